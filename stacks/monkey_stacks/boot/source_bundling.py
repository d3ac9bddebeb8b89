"""Our modules as one text, for a machine that has only Python: parts that only people need are left out.

This edits the text of the modules. The text of a syntax tree differs between versions of Python, and a machine that
gets a different text counts as changed.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib import resources
from typing import TypeGuard

#: Spaces of one indent in our modules.
INDENT = 4
_OURS = ("monkey", "monkey_stacks", "__future__")


def join_modules(modules: Iterable[str]) -> str:
    """Return the modules as one text; each must come after those that it imports, and no two may share a name."""
    sources = [_source(name) for name in modules]
    imports: dict[str, set[str]] = defaultdict(set)
    for module, name in (found for source in sources for found in _imports(ast.parse(source))):
        imports[module].add(name)
    whole = [module for module, names in sorted(imports.items()) if "" in names]
    plain = [f"import {', '.join(whole)}"] if whole else []
    reduced = [reduce_source(source) for source in sources]
    # What only types named is gone with them.
    words = set(re.findall(r"\w+", "\n".join(reduced)))
    for module, names in sorted(imports.items()):
        plain += [f"from {module} import {', '.join(sorted(names & words))}"] if names & words else []
    return "\n".join(["from __future__ import annotations", *plain, *reduced]) + "\n"


def _source(name: str) -> str:
    package, _, module = name.rpartition(".")
    return resources.files(package).joinpath(f"{module}.py").read_text("utf-8")


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the module and the name of each import from a module that is not ours; "" for the module itself."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] not in _OURS:
            yield from ((node.module or "", alias.name) for alias in node.names)


def reduce_source(source: str) -> str:
    """Return a module without imports, docstrings, types, comments and empty lines, and with indents of one space."""
    lines = _untyped(source)
    dropped: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_type_variable(node):
            dropped.update(_lines(node))
        body = node.body if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) else []
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            dropped.update(_lines(body[0]))
            if len(body) == 1 and not isinstance(node, ast.Module):
                dropped.discard(body[0].lineno)
                lines[body[0].lineno - 1] = " " * body[0].col_offset + "pass"
    inside: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0] - 1] = lines[token.start[0] - 1][: token.start[1]].rstrip()
        elif token.type == tokenize.STRING:
            inside.update(range(token.start[0] + 1, token.end[0] + 1))
    kept = ((at, line) for at, line in enumerate(lines, 1) if at not in dropped and (line.strip() or at in inside))
    return "\n".join(line if at in inside else _narrow(line) for at, line in kept)


def _untyped(source: str) -> list[str]:
    """Return a module's lines, without the types of arguments, attributes and return values."""
    lines, cuts = source.splitlines(), []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg) and node.annotation:
            cuts.append((node.annotation.end_lineno, node.col_offset + len(node.arg), node.annotation.end_col_offset))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            begin = lines[node.lineno - 1].index(":", node.target.col_offset)
            cuts.append((node.annotation.end_lineno, begin, node.annotation.end_col_offset))
        elif isinstance(node, ast.FunctionDef) and node.returns:
            begin = lines[node.returns.lineno - 1].rindex(" ->", 0, node.returns.col_offset)
            cuts.append((node.returns.end_lineno, begin, node.returns.end_col_offset))
    for at, begin, end in sorted(cuts, key=lambda cut: -cut[1]):
        assert at is not None
        lines[at - 1] = lines[at - 1][:begin] + lines[at - 1][end:]
    return lines


def _is_type_variable(node: ast.AST) -> TypeGuard[ast.Assign]:
    return isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("TypeVar(")


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _narrow(line: str) -> str:
    text = line.lstrip(" ")
    return " " * ((len(line) - len(text)) // INDENT) + text
