"""Is a stored object of the shape it should be? Many can write into a store; none may stop an agent by that."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any


class Misshapen(ValueError):
    """A stored object is JSON, but not of the shape that its kind has."""


def parse(data: bytes) -> dict[str, Any]:
    """Read a JSON object. Raises ValueError for anything else, nesting beyond measure included."""
    try:
        body = json.loads(data)
    except RecursionError as exc:
        raise Misshapen("nested too deeply") from exc
    if not isinstance(body, dict):
        raise Misshapen(f"expected an object, found {type(body).__name__}")
    return body


def check(body: dict[str, Any], shape: Mapping[str, Callable[[Any], bool]]) -> None:
    """Check every field that is there. Raises Misshapen for one of another type, or one that is not known."""
    for name, value in body.items():
        test = shape.get(name)
        if test is None or not test(value):
            raise Misshapen(f"{name!r} is {value!r:.40}")


def text(value: Any) -> bool:
    """Is it a string?"""
    return isinstance(value, str)


def whole(value: Any) -> bool:
    """Is it an integer (and no bool)?"""
    return type(value) is int


def number(value: Any) -> bool:
    """Is it a number (and no bool)?"""
    return type(value) in (int, float)


def flag(value: Any) -> bool:
    """Is it true or false?"""
    return isinstance(value, bool)


def texts(value: Any) -> bool:
    """Is it a list of strings?"""
    return isinstance(value, list) and set(map(type, value)) <= {str}


def wholes(value: Any) -> bool:
    """Is it a list of integers?"""
    return isinstance(value, list) and set(map(type, value)) <= {int}


def numbers(value: Any) -> bool:
    """Is it a list of numbers?"""
    return isinstance(value, list) and set(map(type, value)) <= {int, float}


def text_to_text(value: Any) -> bool:
    """Is it an object whose values are strings?"""
    return isinstance(value, dict) and set(map(type, value.values())) <= {str}


def text_to_whole(value: Any) -> bool:
    """Is it an object whose values are integers?"""
    return isinstance(value, dict) and set(map(type, value.values())) <= {int}


def text_to_number(value: Any) -> bool:
    """Is it an object whose values are numbers?"""
    return isinstance(value, dict) and set(map(type, value.values())) <= {int, float}


def text_to_object(value: Any) -> bool:
    """Is it an object whose values are objects?"""
    return isinstance(value, dict) and set(map(type, value.values())) <= {dict}


def claims(value: Any) -> bool:
    """Is it a list of (log, position)?"""
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and text(pair[0]) and whole(pair[1]) for pair in value
    )
