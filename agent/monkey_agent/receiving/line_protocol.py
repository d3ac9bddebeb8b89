"""Line protocol as InfluxDB reads it: `measurement,tag=value field=1.5,step=10i 1790000000000000000`.

Fields become metrics. A backslash before a comma, a space or an equals sign makes it a part of a name. What comes may
be hostile: each part of a pattern is atomic, so no text is tried twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from monkey.metrics.record_feed import MAX_STEP
from monkey_agent.collecting.source_record import name_split_metric

# As InfluxDB reads it, a run of backslashes escapes the character behind it, however long the run is. In the name of a
# field, one backslash escapes one character.
_MEASUREMENT = r"(?>(?:[^, \n\\]+|\\+[^\n\\])+)"
_NAME = r"(?>(?:[^,= \n\\]+|\\+[^\n\\])+)"
_TAG_VALUE = r"(?>(?:[^,= \n\\]+|\\+[^\n\\])*)"
_FIELD_NAME = r"(?>(?:[^,= \n\\]+|\\[^\n])+)"
#: A text in quotes may hold newlines.
_VALUE = r'(?>"(?:[^"\\]+|\\[\s\S])*"|[^," \r\n]+)'
_FIELDS = rf"(?>{_FIELD_NAME}={_VALUE}(?:,{_FIELD_NAME}={_VALUE})*)"
_LINE = re.compile(rf"({_MEASUREMENT}(?>(?:,{_NAME}={_TAG_VALUE})*))(?> +)({_FIELDS})(?> *)(-?\d+)?[ \r]*(?:\n|\Z)")
_TAG = re.compile(rf",({_NAME})=({_TAG_VALUE})")
_FIELD = re.compile(rf"({_FIELD_NAME})=({_VALUE})")
_ESCAPED = re.compile(r"\\([,= ])")
_BOOLEANS = {**dict.fromkeys(("t", "T", "true", "True", "TRUE"), 1), **dict.fromkeys("fF", 0)}
_BOOLEANS |= dict.fromkeys(("false", "False", "FALSE"), 0)
#: Fields that are a point's step; the first one that is there.
STEP_FIELDS = ("step", "iteration")
#: Name of a field that says nothing: writers give it to the only value of a measurement.
_SINGLE_VALUE = "value"
#: Characters of the longest number.
_LONGEST_NUMBER = 64
#: Nanoseconds since the epoch that are taken for a time: from the year 2001 to what InfluxDB can hold. What is less
#: is in another unit, or of a clock that was never set.
_TIMES = range(10**18, 2**63 - 2)


class ReceivedPoint(NamedTuple):
    """One point of line protocol."""

    #: Metric to value: finite or not; whole numbers are int.
    metrics: Mapping[str, float]
    step: int | None
    #: Nanoseconds since the epoch; None where the line has none that can be one.
    ns: int | None
    #: Names and values.
    tags: tuple[tuple[str, str], ...]
    #: Number of fields that hold texts, which are no metrics.
    texts: int


def parse_lines(text: str) -> Iterator[ReceivedPoint | None]:
    """Yield the point of each line; None for a line that is none. Empty lines and comments (#) are passed over."""
    at = 0
    while at < len(text):
        if text[at] in "\n\r #":
            at = text.find("\n", at) + 1 or len(text) if text[at] == "#" else at + 1
        elif line := _LINE.match(text, at):
            at = line.end()
            yield _read_point(*line.groups())
        else:
            at = text.find("\n", at) + 1 or len(text)
            yield None


def _read_point(head: str, fields: str, ns: str | None) -> ReceivedPoint | None:
    measurement, tags = _read_head(head)
    values: dict[str, float] = {}
    texts = 0
    for name, text in _FIELD.findall(fields):
        if text[0] == '"':
            texts += 1
            continue
        value = _convert(text)
        if value is None:
            return None
        values[_unescape(name) if "\\" in name else name] = value
    step = None
    for name in STEP_FIELDS:
        if name in values:
            step = _read_step(values.pop(name))
            break
    named = {_name_metric(measurement, name): value for name, value in values.items()}
    return ReceivedPoint(named, step, _read_time(ns), tags, texts)


@lru_cache(1024)
def _read_head(head: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the measurement and the tags; a tag without a value is none."""
    measurement, found = _split_head(head)
    return _unescape(measurement), tuple((_unescape(key), _unescape(value)) for key, value in found if value)


def _split_head(head: str) -> tuple[str, list[tuple[str, str]]]:
    measurement = re.match(_MEASUREMENT, head)
    assert measurement is not None
    return measurement[0], _TAG.findall(head, measurement.end())


@lru_cache(1024)
def _name_metric(measurement: str, field: str) -> str:
    return measurement if field == _SINGLE_VALUE else name_split_metric(measurement, field)


def _unescape(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def _convert(text: str) -> float | None:
    """Return a field's number; None where it is none."""
    if len(text) > _LONGEST_NUMBER or not text.isascii() or "_" in text:
        return None
    try:
        return int(text[:-1]) if text[-1] in "iu" else float(text)
    except ValueError:
        return _BOOLEANS.get(text)


def _read_step(value: float) -> int | None:
    whole = int(value) if value - value == 0 else None
    return whole if whole is not None and whole == value and -MAX_STEP <= whole < MAX_STEP else None


def _read_time(text: str | None) -> int | None:
    if text is None or len(text) > _LONGEST_NUMBER:
        return None
    ns = int(text)
    return ns if ns in _TIMES else None
