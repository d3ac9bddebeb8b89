"""Scalars of YAML 1.2's core schema, less what JSON, argv or an environment variable cannot carry."""

from __future__ import annotations

import math
import re

#: Digits of a whole number.
_MAX_INTEGER_DIGITS = 100

_INT = re.compile(r"[-+]?[0-9]+\Z")
_OTHER_BASE = re.compile(r"0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z")
#: One character in two escapes, as JSON's writers put it.
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_CONSTANT_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


class InvalidScalarError(ValueError):
    """Text that stands for no value of ours."""

    def __init__(self, message: str, hint: str) -> None:
        """Say what was found and what to write."""
        super().__init__(message)
        self.message, self.hint = message, hint


def parse_scalar(text: str, *, plain: bool) -> bool | int | float | str | None:
    """Return what a scalar means; one that is not `plain` (quoted, block) is text. Raises BadScalar."""
    if not plain:
        return _check_text(text)
    if text in _CONSTANT_WORDS:
        return _CONSTANT_WORDS[text]
    if _INT.match(text) or _OTHER_BASE.match(text):
        return _parse_integer(text)
    if _NOT_FINITE.match(text):
        raise InvalidScalarError(f"expected a finite number, found {text}", "write a number; in quotes it is text")
    return _parse_float(text) if _FLOAT.match(text) else _check_text(text)


def _parse_integer(text: str) -> int:
    if len(text) > _MAX_INTEGER_DIGITS:
        raise InvalidScalarError(
            f"expected at most {_MAX_INTEGER_DIGITS} digits, found {len(text)}", "put it in quotes to make it text"
        )
    return int(text[2:], 8 if text[1] == "o" else 16) if _OTHER_BASE.match(text) else int(text)


def _parse_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise InvalidScalarError(f"the number {text[:40]} is too large", "put it in quotes to pass it on as text")
    return number


def _check_text(text: str) -> str:
    if "\0" in text:
        raise InvalidScalarError(
            "text cannot hold the character NUL", "no argument of a process can carry it; remove \\0"
        )
    text = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidScalarError("text cannot hold half a surrogate pair", "write the character itself, or both halves")
    return text
