"""The product's size in tokens of Python: neither long lines nor short ones, nor words that explain, change it."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

#: The top packages.
PACKAGES = ("monkey", "agent", "stacks")
_LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


def describe_size(root: Path) -> str:
    """Return a line with the tokens of each top package of the repository at `root`, and of all."""
    sizes = {name: sum(count_tokens(path.read_text()) for path in (root / name).rglob("*.py")) for name in PACKAGES}
    parts = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
    return f"size in tokens: {parts}; in all {sum(sizes.values()):,}"


def count_tokens(text: str) -> int:
    """Count the tokens of a module without its comments, docstrings and imports."""
    left_out = {line for node in ast.walk(ast.parse(text)) for line in _list_lines(node)}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type not in _LAYOUT and token.start[0] not in left_out for token in tokens)


def _list_lines(node: ast.AST) -> Iterator[int]:
    """Yield the lines of an import, or of a docstring."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        if ast.get_docstring(node, clean=False) is None:
            return
        node = node.body[0]
    elif not isinstance(node, ast.Import | ast.ImportFrom):
        return
    assert node.end_lineno is not None
    yield from range(node.lineno, node.end_lineno + 1)
