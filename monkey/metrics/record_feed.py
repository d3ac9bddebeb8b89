"""The feed of metric records: pieces of files in, values out, however the files were cut into pieces.

It reads the lines that `monkey.log` writes, and others that a job may have appended beside them. A line that is no
record is counted and skipped, because a broken metrics file must never cost a finished job its end.

A line: `{"t": seconds since the epoch, "step": integer or null, "m": {"loss": 0.3}}`. Numbers stay what they are:
whole ones whole, of any size, and floats to the last digit. A value that is not finite is "nan", "inf" or "-inf" in
quotes, as JSON has no such numbers. null, NaN and Infinity are read as the same. A line may have tags for InfluxDB,
`"tags": {"layer": "3"}`; nothing else reads them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite

#: Bytes of the longest line that is read: a longer one is garbage, not a record to wait for.
MAX_LINE = 1 << 20
#: Names beyond this many are left out, unless a spec names them: the summary travels in the job's end, and in every
#: status.
MAX_METRICS = 1000
#: Steps beyond 64 bits are read as no step: InfluxDB and other readers could not hold them.
MAX_STEP = 1 << 63
#: Tags of a record, and characters of a tag's name and value, at most.
_MAX_TAGS, _MAX_TAG_NAME, _MAX_TAG_VALUE = 20, 64, 200

_NONFINITE = {text: float(text) for sign in ("", "+", "-") for text in (sign + "nan", sign + "inf", sign + "infinity")}


class RecordFeed:
    """The reader of records that are fed as raw bytes; each subclass does something else with their values."""

    def __init__(self) -> None:
        """Start without records."""
        #: Of each file, the step of its first record that has one.
        self._first_steps: dict[str, int] = {}
        #: Records at or after this step are left out.
        self.until: int | None = None
        #: Are records without a step left out?
        self.stepped_only = False
        #: Number of lines that were no records, and of values that were no numbers.
        self.garbage = 0
        self._tails: dict[str, bytes] = {}
        self._skipping: set[str] = set()

    def feed(self, data: bytes, source: str = "") -> None:
        """Read the next bytes of a file; `source` names the file, because each has an unfinished last line of its own.

        Within a file, the last record is the last line; between files, it is the one of the latest time. Never raises.
        """
        *lines, tail = (self._tails.get(source, b"") + data).split(b"\n")
        if lines and source in self._skipping:
            self._skipping.discard(source)
            lines = lines[1:]
        for line in lines:
            self._line(line, source)
        if len(tail) > MAX_LINE:
            self.garbage += source not in self._skipping
            self._skipping.add(source)
            tail = b""
        self._tails[source] = tail

    def end_lines(self) -> None:
        """Read the last lines, which lack their newline; nothing is fed afterwards."""
        for source, tail in self._tails.items():
            if tail and source not in self._skipping:
                self._line(tail, source)
        self._tails.clear()

    @property
    def first_step(self) -> int | None:
        """The step at which the records begin: the lowest of the first steps of all files; None without a step."""
        return min(self._first_steps.values(), default=None)

    def _line(self, line: bytes, source: str) -> None:
        if not line.strip():
            return
        try:
            record = json.loads(line) if len(line) <= MAX_LINE else None
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict) or not isinstance(metrics := record.get("m"), dict) or not _has_time(record):
            self.garbage += 1
            return
        step, at = record.get("step"), record.get("t")
        step = step if type(step) is int and -MAX_STEP <= step < MAX_STEP else None
        at = float(at) if type(at) is float or (type(at) is int and abs(at) < 1 << 53) else 0.0
        if step is not None:
            self._first_steps.setdefault(source, step)
        if self.stepped_only if step is None else self.until is not None and step >= self.until:
            return
        for name, value in metrics.items():
            self._value(name, value, step, at, source)

    def _value(self, name: str, value: object, step: int | None, at: float, source: str) -> None:
        raise NotImplementedError


def _has_time(record: Mapping[str, object]) -> bool:
    """Return whether its time is a number, or left out: then the record follows the one before it."""
    at = record.get("t", 0)
    return type(at) is int or (type(at) is float and isfinite(at))


def convert_to_number(value: object) -> float | None:
    """Return a value of a record as a number, NaN and infinities included; None where it is no number."""
    if type(value) is float:
        return value
    if value is None:
        return float("nan")
    if isinstance(value, str):
        return _NONFINITE.get(value.lower())
    return int(value) if isinstance(value, int) else None


def select_tags(tags: Mapping[str, object]) -> dict[str, str]:
    """Return the tags of a record that can be sent: texts that are short and printable, and not too many."""
    picked: dict[str, str] = {}
    for name, value in tags.items():
        if (
            isinstance(value, str)
            and 0 < len(name) <= _MAX_TAG_NAME
            and 0 < len(value) <= _MAX_TAG_VALUE
            and len(picked) < _MAX_TAGS
            and name.isprintable()
            and value.isprintable()
        ):
            picked[name] = value
    return picked
