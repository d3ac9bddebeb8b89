"""The mutants of a module: each differs from it in one expression or statement."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

#: Comparison → what is put in its place: what is true otherwise, and the bound moved by one.
_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.GtE, ast.LtE),
    ast.LtE: (ast.Gt, ast.Lt),
    ast.Gt: (ast.LtE, ast.GtE),
    ast.GtE: (ast.Lt, ast.Gt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}


@dataclass(frozen=True)
class Mutant:
    """A change of one place of a file: of the bytes from `start` to `end`."""

    path: str
    line: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before} -> {self.after}"

    def apply(self, text: bytes) -> bytes:
        """Return the file with the change."""
        return text[: self.start] + self.after.encode() + text[self.end :]


def list_mutants(path: str, text: bytes) -> list[Mutant]:
    """Return all mutants of a module in the order of its lines; `path` is what they are to say of where they are."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, changed in _walk(ast.parse(text)):
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        found.append(Mutant(path, node.lineno, start, end, ast.unparse(node), ast.unparse(changed)))
    return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.after))


def _walk(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield each node below that can be changed, with each changed one."""
    for part in _list_parts(node):
        yield from ((part, changed) for changed in _change(part))
        yield from _walk(part)


def _list_parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a node is made of, but for types, and for text that people read."""
    for name, value in ast.iter_fields(node):
        # Python 3.11 does not say where a part of an f-string is.
        if name in ("annotation", "returns") or isinstance(value, ast.JoinedStr):
            continue
        for part in value if isinstance(value, list) else [value]:
            typed = isinstance(part, ast.If) and ast.unparse(part.test) == "TYPE_CHECKING"
            text = isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
            if isinstance(part, ast.AST) and not isinstance(part, ast.JoinedStr) and not typed and not text:
                yield part


def _change(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Constant):
        yield from _change_constant(node)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for turned in _COMPARISONS[type(node.ops[0])]:
            yield _replace(node, ops=[turned()])
    elif isinstance(node, ast.BoolOp):
        yield _replace(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        for at in range(len(node.values)):
            rest = node.values[:at] + node.values[at + 1 :]
            yield rest[0] if len(rest) == 1 else _replace(node, values=rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        yield _replace(node, op=_ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        yield ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Raise | ast.AugAssign) or _is_call(node):
        yield ast.Pass()


def _change_constant(node: ast.Constant) -> Iterator[ast.AST]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)
    elif isinstance(node.value, str) and node.value.isidentifier():
        yield ast.Constant(f"{node.value}_")


def _is_call(node: ast.AST) -> bool:
    """Say whether a statement is a call, whose value nobody takes."""
    if not isinstance(node, ast.Expr):
        return False
    value = node.value.value if isinstance(node.value, ast.Await) else node.value
    return isinstance(value, ast.Call)


def _replace(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed
