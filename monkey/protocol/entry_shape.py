"""Is a stored object of the shape it should be? Many can write into a store; none may stop an agent by that."""

from __future__ import annotations

import json
import re
import reprlib
import sys
from collections.abc import Callable, Collection, Mapping
from datetime import MAXYEAR, datetime
from typing import Any

from monkey.store.keys import check_key, is_encodable
from monkey.store.object_limits import OversizedEntry

#: Says whether a value is of a shape. May raise Misshapen to say what of it is not.
Test = Callable[[Any], bool]

#: Seconds since the epoch: from here on years have five digits, and Python has no such date.
_LAST_SECOND = 253_402_300_800


class MalformedEntry(ValueError):
    """A stored object is JSON, but not of the shape that its kind has."""


def parse_object(data: bytes) -> dict[str, Any]:
    """Read a JSON object. Raises ValueError for anything else, nesting beyond measure included."""
    refuse_oversized(data)
    try:
        body = json.loads(data)
    except RecursionError as exc:
        raise MalformedEntry("nested too deeply") from exc
    if not isinstance(body, dict):
        raise MalformedEntry(f"expected an object, found {type(body).__name__}")
    return body


def refuse_oversized(data: bytes) -> None:
    """Raise MalformedEntry for what stands for an entry that is too large to be read."""
    if isinstance(data, OversizedEntry):
        raise MalformedEntry(data.why)


def check_shape(body: dict[str, Any], shape: Mapping[str, Test]) -> None:
    """Check every field that is there. Raises MalformedEntry for one of another type, or one that is not known."""
    for name, value in body.items():
        test = shape.get(name)
        if test is None or not test(value):
            raise MalformedEntry(f"{name!r:.40} is {reprlib.repr(value):.40}")


def is_text(value: Any) -> bool:
    """Is it a string?"""
    return isinstance(value, str)


def is_plain_text(value: Any) -> bool:
    """Is it a string that programs can be handed: UTF-8 without NUL?"""
    return is_text(value) and "\0" not in value and is_encodable(value)


def is_key(value: Any) -> bool:
    """Is it a string that may be a part of a key?"""
    try:
        return is_text(value) and bool(check_key(value))
    except ValueError:
        return False


def is_matching(pattern: str) -> Test:
    """Return the test for strings that a regular expression describes whole."""
    expression = re.compile(pattern)
    return lambda value: is_text(value) and expression.fullmatch(value) is not None


def make_choice_test(texts: Collection[str]) -> Test:
    """Return the test for strings that are one of these."""
    return lambda value: is_text(value) and value in texts


def is_whole(value: Any) -> bool:
    """Is it an integer of 64 bits (and no bool)?"""
    return type(value) is int and -(1 << 63) <= value < 1 << 63


def is_count(value: Any) -> bool:
    """Is it an integer from 0 on?"""
    return is_whole(value) and value >= 0


def is_finite_number(value: Any) -> bool:
    """Is it a finite number (and no bool)?"""
    return type(value) in (int, float) and -sys.float_info.max <= value <= sys.float_info.max


def is_moment(value: Any) -> bool:
    """Is it a time, or a duration, in seconds?"""
    return is_finite_number(value) and 0 <= value < _LAST_SECOND


def is_time_text(value: Any) -> bool:
    """Is it "", or a time in ISO 8601?"""
    try:
        return is_text(value) and (not value or 1970 <= datetime.fromisoformat(value).year < MAXYEAR)
    except ValueError:
        return False


def is_flag(value: Any) -> bool:
    """Is it true or false?"""
    return isinstance(value, bool)


def is_texts(value: Any) -> bool:
    """Is it a list of strings?"""
    return isinstance(value, list) and set(map(type, value)) <= {str}


def is_wholes(value: Any) -> bool:
    """Is it a list of integers of 64 bits?"""
    integers = isinstance(value, list) and set(map(type, value)) <= {int}
    return integers and (not value or (is_whole(min(value)) and is_whole(max(value))))


def is_moments(value: Any) -> bool:
    """Is it a list of times, or durations?"""
    numbers = isinstance(value, list) and set(map(type, value)) <= {int, float}
    # NaN hides from min and max, and not from the sum.
    return numbers and (not value or (min(value) >= 0 and max(value) < _LAST_SECOND and sum(value) >= 0))


def make_list_test(test: Test) -> Test:
    """Return the test for lists of such values."""
    return lambda value: isinstance(value, list) and all(map(test, value))


def is_optional(test: Test) -> Test:
    """Return the test for such a value, or none."""
    return lambda value: value is None or test(value)


def make_object_test(shape: Mapping[str, Test]) -> Test:
    """Return the test for objects whose fields, as far as they are there, are of this shape."""

    def test(value: Any) -> bool:
        if isinstance(value, dict):
            check_shape(value, shape)
        return isinstance(value, dict)

    return test


def is_text_map(value: Any) -> bool:
    """Is it an object whose values are strings?"""
    return isinstance(value, dict) and set(map(type, value.values())) <= {str}


def is_whole_map(value: Any) -> bool:
    """Is it an object whose values are integers?"""
    return isinstance(value, dict) and is_wholes(list(value.values()))


def is_number_map(value: Any) -> bool:
    """Is it an object whose values are numbers?"""
    return isinstance(value, dict) and all(map(is_finite_number, value.values()))


def is_object_map(value: Any) -> bool:
    """Is it an object whose values are objects?"""
    return isinstance(value, dict) and set(map(type, value.values())) <= {dict}


def is_claims(value: Any) -> bool:
    """Is it a list of (log, position)?"""
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and is_text(pair[0]) and is_whole(pair[1]) for pair in value
    )
