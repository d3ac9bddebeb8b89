"""Conditions (`when`, `--where`): a small expression language, read by Python's parser, never evaluated by it.

Comparisons, `and`, `or`, `not`, `in`, arithmetic, literals and names of parameters. No calls, attributes, powers.
A name that a job does not have makes what it touches unknown, as NULL does in SQL; unknown at the end is false.
"""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from monkey.spec.job.job_table import ParameterValue
from monkey.spec.yaml.mistakes import suggest_word

#: Characters of a condition, and operators inside each other.
_MAX_CONDITION_CHARACTERS = 2000
_MAX_CONDITION_DEPTH = 50

_CONSTANTS: dict[str, ParameterValue] = {"true": True, "false": False, "null": None}
_KEYWORDS = {"and", "or", "not", "in", "is", "if", "else", "lambda", "True", "False", "None"}
_WORDS = re.compile(r"'[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\"|(?P<word>[^\W\d]\w*)")
_Evaluate = Callable[[Mapping[str, ParameterValue]], Any]


class _Unknown:
    """What a parameter is that a job does not have."""

    def __bool__(self) -> bool:
        raise AssertionError("unknown is neither true nor false")


_UNKNOWN = _Unknown()


class ConditionError(ValueError):
    """Not a condition, or one that cannot be decided; `offset` counts characters, None for the whole of it."""

    def __init__(self, message: str, hint: str | None = None, offset: int | None = None) -> None:
        """Say what was expected and found, what to write, and where."""
        super().__init__(message)
        self.message, self.hint, self.offset = message, hint, offset


@dataclass(frozen=True)
class Condition:
    """A parsed condition; `uses` are the names in it."""

    text: str
    uses: frozenset[str]
    _evaluate: _Evaluate

    def holds(self, parameters: Mapping[str, ParameterValue]) -> bool:
        """Say whether it holds. Raises ConditionError where values do not fit their operators (`"a" < 1`)."""
        try:
            result = self._evaluate(parameters)
        except (TypeError, ZeroDivisionError, OverflowError, RecursionError) as error:
            found = ", ".join(f"{name} = {parameters[name]!r}" for name in sorted(self.uses) if name in parameters)
            raise ConditionError(f"cannot decide {self.text!r} where {found[:200]}: {error}") from error
        if not isinstance(result, bool | _Unknown):
            raise ConditionError(f"expected true or false from {self.text!r}, found {result!r}", "compare it: … != 0")
        return result is True


def parse_condition(text: str, names: Collection[str] | None = None) -> Condition:
    """Read a condition over `names` (None: any name will do). Raises ConditionError."""
    if len(text) > _MAX_CONDITION_CHARACTERS:
        raise ConditionError(f"a condition has at most {_MAX_CONDITION_CHARACTERS} characters, this one {len(text)}")
    shift = len(text) - len(text.lstrip())
    stripped = re.sub(r"[\n\r\f]", " ", text.strip())
    try:
        tree = _parse_python(_mask_keywords(stripped, names))
    except SyntaxError as error:
        raise ConditionError(*_explain_syntax_error(stripped, error, shift)) from error
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise ConditionError("expected a condition", "write it like \"lr < 0.1 and optimizer == 'sgd'\"") from error
    reader = _ConditionReader(stripped, shift, names)
    evaluate = reader.read(tree, 0)
    return Condition(text, frozenset(reader.uses), evaluate)


def _parse_python(text: str) -> ast.expr:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes and the like: the reader below refuses what matters
        return ast.parse(text, mode="eval").body


def _mask_keywords(text: str, names: Collection[str] | None) -> str:
    """Let parameters be called like Python's keywords, save those that conditions themselves use."""
    import keyword

    def replace(match: re.Match[str]) -> str:
        word = match["word"]
        reserved = word and keyword.iskeyword(word) and word not in ("and", "or", "not", "in", "is")
        taken = reserved and word not in ("True", "False", "None") and (names is None or _is_name_part(word, names))
        return "_" * len(match[0]) if taken else match[0]

    return _WORDS.sub(replace, text)


def _is_name_part(word: str, names: Collection[str]) -> bool:
    return any(word in name.split(".") for name in names)


def _explain_syntax_error(text: str, error: SyntaxError, shift: int) -> tuple[str, str, int]:
    hint = "write it like \"lr < 0.1 and optimizer == 'sgd'\""
    at = max((error.offset or 1) - 1, 0)
    if re.search(r"(?<![=!<>])=(?!=)", text):
        hint, at = "to compare, write ==", text.index("=")
    elif "&&" in text or "||" in text:
        hint = "write 'and' and 'or'"
    return f"not a condition: {error.msg}", hint, shift + min(at, max(len(text) - 1, 0))


class _ConditionReader:
    """Turns Python's syntax tree into nested functions, refusing all that is not in the list."""

    def __init__(self, text: str, shift: int, names: Collection[str] | None) -> None:
        self.text = text
        self.shift = shift
        self.names = names
        self.uses: set[str] = set()

    def read(self, node: ast.AST, depth: int) -> _Evaluate:
        if depth > _MAX_CONDITION_DEPTH:
            raise ConditionError(f"expected at most {_MAX_CONDITION_DEPTH} operators inside each other, found more")
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str()):
                return self.constant(node)
            case ast.Name() | ast.Attribute():
                return self.name(node)
            case ast.BoolOp():
                return _all_or_any(isinstance(node.op, ast.And), [self.read(v, depth + 1) for v in node.values])
            case ast.UnaryOp(op=ast.Not()):
                return _not(self.read(node.operand, depth + 1))
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
                sign = operator.neg if isinstance(node.op, ast.USub) else operator.pos
                return _calculate(sign, [self.read(node.operand, depth + 1)])
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                sides = [self.read(side, depth + 1) for side in (node.left, node.right)]
                return _calculate(_ARITHMETIC[type(node.op)], sides)
            case ast.Compare():
                return self.compare(node, depth)
            case ast.List() | ast.Tuple() | ast.Set():
                return _list([self.read(item, depth + 1) for item in node.elts])
        raise self.refuse(node)

    def constant(self, node: ast.Constant) -> _Evaluate:
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 400:
            raise ConditionError("a number has too many digits", None, self.offset(node))
        return lambda _: value

    def name(self, node: ast.AST) -> _Evaluate:
        name = self.dotted(node, node)
        if name in _CONSTANTS and (self.names is None or name not in self.names):
            value = _CONSTANTS[name]
            return lambda _: value
        if self.names is not None and name not in self.names:
            hint = suggest_word(name, self.names, "parameters")
            hint += "" if hint.endswith("?") else "; text needs quotes: 'adam'"
            raise ConditionError(f"unknown parameter {name!r}", hint, self.offset(node))
        self.uses.add(name)
        return lambda parameters: parameters.get(name, _UNKNOWN)

    def dotted(self, node: ast.AST, whole: ast.AST) -> str:
        if isinstance(node, ast.Attribute):
            return f"{self.dotted(node.value, whole)}.{self.unmask(node, node.attr)}"
        if isinstance(node, ast.Name):
            return self.unmask(node, node.id)
        raise self.refuse(whole)

    def unmask(self, node: ast.Name | ast.Attribute, word: str) -> str:
        """Undo `_mask_keywords`: ask the text itself what stands under underscores."""
        if word.strip("_"):
            return word
        return (ast.get_source_segment(self.text, node) or word).split(".")[-1].strip()

    def compare(self, node: ast.Compare, depth: int) -> _Evaluate:
        tests = []
        sides = [self.read(side, depth + 1) for side in (node.left, *node.comparators)]
        for at, op in enumerate(node.ops):
            if type(op) not in _COMPARE:
                raise ConditionError("'is' is not there", "write == or !=", self.offset(node))
            tests.append(_compare(_COMPARE[type(op)], sides[at], sides[at + 1]))
        return tests[0] if len(tests) == 1 else _all_or_any(True, tests)

    def refuse(self, node: ast.AST) -> ConditionError:
        what = _NAMES.get(type(node).__name__, type(node).__name__.lower())
        hint = "there are comparisons, and, or, not, in, + - * / // %, numbers, text in quotes and parameters"
        return ConditionError(f"{what} cannot stand in a condition", hint, self.offset(node))

    def offset(self, node: ast.AST) -> int:
        column = getattr(node, "col_offset", 0)
        return self.shift + len(self.text.encode()[:column].decode("utf-8", "ignore"))


_NAMES = {"Call": "a call", "BinOp": "this operator", "UnaryOp": "this operator", "Attribute": "an attribute",
          "Subscript": "an index", "Lambda": "a function", "JoinedStr": "an f-string", "IfExp": "if … else",
          "Dict": "a mapping", "Constant": "this literal"}  # fmt: skip

_ARITHMETIC: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}


def _calculate(apply: Callable[..., Any], sides: list[_Evaluate]) -> _Evaluate:
    """Calculate with numbers only: text times a number would be as long as it likes."""

    def evaluate(parameters: Mapping[str, ParameterValue]) -> Any:
        values = [side(parameters) for side in sides]
        if _UNKNOWN in values:
            return _UNKNOWN
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(f"cannot calculate with {value!r}")
        return apply(*values)

    return evaluate


def _compare(test: Callable[[Any, Any], bool], left: _Evaluate, right: _Evaluate) -> _Evaluate:
    def evaluate(parameters: Mapping[str, ParameterValue]) -> Any:
        sides = (left(parameters), right(parameters))
        return _UNKNOWN if _UNKNOWN in sides else test(*sides)

    return evaluate


def _list(items: list[_Evaluate]) -> _Evaluate:
    def evaluate(parameters: Mapping[str, ParameterValue]) -> Any:
        values = [item(parameters) for item in items]
        return _UNKNOWN if _UNKNOWN in values else values

    return evaluate


def _require_truth(value: Any) -> bool | _Unknown:
    if not isinstance(value, bool | _Unknown):
        raise TypeError(f"expected true or false, found {value!r}")
    return value


def _not(inner: _Evaluate) -> _Evaluate:
    def evaluate(parameters: Mapping[str, ParameterValue]) -> Any:
        value = _require_truth(inner(parameters))
        return _UNKNOWN if value is _UNKNOWN else not value

    return evaluate


def _all_or_any(every: bool, parts: list[_Evaluate]) -> _Evaluate:
    """Join by `and` (`every`) or `or`: the first part that decides wins, else unknown wins."""

    def evaluate(parameters: Mapping[str, ParameterValue]) -> Any:
        result: bool | _Unknown = every
        for part in parts:
            value = _require_truth(part(parameters))
            if value is not every and value is not _UNKNOWN:
                return value
            if value is _UNKNOWN:
                result = _UNKNOWN
        return result

    return evaluate
