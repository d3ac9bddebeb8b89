"""Advice on scalars that are other than they look: texts that look like numbers, and numbers whose spelling is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from math import isfinite

from monkey.spec.yaml.document import YamlDocument
from monkey.spec.yaml.parser import YamlNode

#: Fields of a spec that have values of parameters.
_FIELDS = ("parameters", "repeat", "include")
#: Sentences of one file.
_MOST = 5
_NUMBER = r"([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)"
_ARITHMETIC = re.compile(rf"{_NUMBER} *(\*\*|\^|\*) *{_NUMBER}")
_GROUPED = re.compile(r"[-+]?[0-9]{1,3}(_[0-9]{3})+(\.[0-9]+)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+(\.[0-9]*)?")
#: A version, such as Python's; 0.10 is none.
_TRAILING_ZERO = re.compile(r"[1-9][0-9]*\.[1-9]0")
#: A hash or another name of digits, if the number is larger than what anyone counts or measures.
_EXPONENT = re.compile(r"[0-9]+[eE][0-9]+")
_LARGEST = 1e38
#: Characters of a number that a person writes. A longer text is not looked at, for these patterns would take minutes.
_MOST_CHARACTERS = 60
_NOTHING = YamlNode(None, 0, 0)


def list_number_advice(document: YamlDocument) -> list[str]:
    """Return a sentence for each of the first plain values of parameters that are other than they look."""
    return list(islice(_advise(document), _MOST))


def _advise(document: YamlDocument) -> Iterator[str]:
    for field in _FIELDS:
        for group in _walk(document.root.content.get(field, _NOTHING)):
            decimals = {len(node.written.partition(".")[2]) for node in group}
            aligned = len(group) > 1 and len(decimals) == 1
            for node in group:
                number = _read_number(node, aligned)
                if number:
                    what = "a text" if isinstance(node.content, str) else f"the number {number}"
                    place = f"{document.file}:{node.line + 1}:{node.column + 1}"
                    yield f"{place}: {node.written} is {what}: write {number}, or '{node.written}' in quotes"


def _walk(node: YamlNode) -> Iterator[list[YamlNode]]:
    """Yield scalars, those of one list together."""
    inner: list[YamlNode] = []
    match node.content:
        case dict():
            inner = [*node.content.values()]
        case list():
            inner = [child for child in node.content if isinstance(child.content, dict | list)]
            yield [child for child in node.content if not isinstance(child.content, dict | list)]
        case _:
            yield [node]
    for child in inner:
        yield from _walk(child)


def _read_number(node: YamlNode, aligned: bool) -> str:
    """Return the number that a doubtful scalar is or may mean; "" for one that is no such."""
    written = node.written
    if len(written) > _MOST_CHARACTERS:
        return ""
    found = _ARITHMETIC.fullmatch(written)
    if found:
        return _calculate(*found.groups())
    if _GROUPED.fullmatch(written):
        return written.replace("_", "")
    huge = _EXPONENT.fullmatch(written) and node.content > _LARGEST
    if huge or _LEADING_ZERO.fullmatch(written) or (_TRAILING_ZERO.fullmatch(written) and not aligned):
        return repr(node.content)
    return ""


def _calculate(left: str, sign: str, right: str) -> str:
    """Return the value of a text of arithmetic; "" for one that is no number of ours."""
    try:
        first, second = Decimal(left), Decimal(right)
        value = float(first * second if sign == "*" else first**second)
    except ArithmeticError:
        return ""
    return f"{value:.12g}" if isfinite(value) else ""
