"""The records that `monkey.log` wrote, as points: whole pieces of a file at once, since one agent serves many jobs.

A record's time is its timestamp, to the nanosecond. InfluxDB keeps one point of a series and an instant, so within a
file timestamps must grow. One that does not (two records of one instant, a clock that was set back) becomes the one
before it plus a nanosecond. That depends on nothing but the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Context, Decimal, DecimalException
from functools import lru_cache
from typing import Any, NamedTuple

from monkey.metrics import names
from monkey.metrics.influx.influx_points import MAX_TIME, convert_to_float, escape_tag, name_metric_field, write_tags
from monkey.metrics.metric_log import is_metric_name
from monkey.metrics.record_feed import MAX_LINE, MAX_STEP, convert_to_number, select_tags

# A record as `monkey.log` itself writes it, of names that are known, and whose numbers cannot be too large: a run of
# those is translated by exchanging its punctuation. Atomic groups: nothing is tried twice. No possessive quantifiers
# (`++`): by them CPython before 3.11.5 matches half of a record (python/cpython#106052).
_PLAIN = re.compile(r"(?!(?:step|t|m)\Z)[ !#-\[\]-~]{1,200}\Z")
_VALUE = rb"(?>-?(?:0|[1-9]\d{0,17})(?:\.\d{1,20})?(?:e[+-]\d\d)?)"
_STEP = rb"(?:null|-?(?:0|[1-9]\d{0,17}))"
#: Number of names of one file that are sent; values of further names are counted as garbage.
MAX_FIELDS = 10_000
#: Number of distinct sets of tags of one file that make series of their own; later ones are sent without their tags.
MAX_SERIES = 200
#: Number of known names up to which a file is read by runs; with more, the search takes longer than it saves.
_FEW = 100
# Between name and value there is `":`, which becomes `=`; a colon in a name is this meanwhile, which no plain name has.
_EQUALS, _COLON = bytes.maketrans(b":", b"="), "\1"
_TIMES = re.compile(rb'"t":(\d{19})e-9')
_CONTEXT = Context(prec=60)


@lru_cache(64)
def _run_of(known: tuple[str, ...]) -> re.Pattern[bytes] | None:
    """Return a pattern that matches a run of one or more records of these names; None where no name is plain."""
    plain = [re.escape(name).encode() for name in known if _plain(name)]
    if not plain or len(known) > _FEW:
        return None
    pair = rb'"(?:' + b"|".join(plain) + rb')":' + _VALUE
    head, tail = rb'\{"m":\{' + pair + rb"(?>(?:," + pair + rb")*)", rb',"t":[1-8]\d{18}e-9\}\n'
    return re.compile(rb"(?:" + head + rb'\},"step":' + _STEP + tail + rb")+")


def _plain(name: str) -> bool:
    # One that ends in _ may be what another becomes, and names are exchanged one after the other; one that ends in ",t"
    # looks like the record's own key once the quotes are gone.
    return bool(_PLAIN.match(name)) and not name.endswith(("_", ",t"))


class RecordCut(NamedTuple):
    """The place at which a later attempt began again: what a file has behind it is abandoned."""

    #: The first step that is abandoned.
    step: float
    #: The first byte from which on records without a step are.
    place: float


#: For files of an attempt that is continued nowhere, and of one that nothing continued yet.
NOTHING_KEPT, ALL_KEPT = RecordCut(float("-inf"), 0), RecordCut(float("inf"), float("inf"))


class Records:
    """The records of one file, in their order."""

    def __init__(
        self, tags: Mapping[str, str], state: Mapping[str, Any] | None = None, cut: RecordCut = ALL_KEPT
    ) -> None:
        """Start with the file, or continue from an earlier `state`; `tags`: see `influx_points.make_metric_tags`.

        `cut`: what of it a later attempt abandoned; for a file that is read from its beginning.
        """
        state = state or {}
        self._tags = dict(tags)
        self._head, self._abandoned = self._write_heads({})
        #: Tags of records to the heads of their points: kept, and abandoned.
        self._series: dict[tuple[tuple[str, str], ...], tuple[bytes, bytes]] = {}
        for each in state.get("series", ()):
            self._series[tuple((name, value) for name, value in each)] = self._write_heads(dict(each))
        self._cut, self._at = cut, 0
        self._last: int = state.get("last", 0)
        self._names: set[str] = set(state.get("names", ()))
        self._run = _run_of(tuple(sorted(self._names)))
        #: Number of lines that were no records, and of values that were no numbers, or of too many names.
        self.garbage: int = state.get("garbage", 0)
        #: Number of values that were not finite.
        self.nonfinite: int = state.get("nonfinite", 0)

    def state(self) -> dict[str, Any]:
        """Return the state that `__init__` continues from, as data for JSON."""
        names_ = sorted(self._names)
        state = {"last": self._last, "names": names_, "garbage": self.garbage, "nonfinite": self.nonfinite}
        return state | ({"series": list(self._series)} if self._series else {})

    def convert_abandoned(self, data: bytes) -> bytes:
        """Return of the points that `convert` returns those that are abandoned."""
        points = self.convert(data).splitlines(keepends=True)
        heads = self._abandoned, *(abandoned for _, abandoned in self._series.values())
        return b"".join(point for point in points if point.startswith(heads))

    def convert(self, data: bytes) -> bytes:
        """Return the points of the file's next lines, which must be whole. Never raises."""
        parts = []
        at = 0
        while at < len(data):
            run = self._run.match(data, at) if self._run and self._cut is ALL_KEPT else None
            if run:
                parts.append(self._translated(run[0]))
                at = run.end()
            else:
                end = data.find(b"\n", at) + 1 or len(data)
                parts.append(self._line(data[at:end]))
                self._at += end - at
                at = end
        return b"".join(parts)

    def _translated(self, run: bytes) -> bytes:
        times = _TIMES.findall(run)
        if int(times[0]) <= self._last or times != sorted(times) or len(set(times)) < len(times):
            return b"".join(map(self._line, run.splitlines()))
        self._last = int(times[-1])
        # Only names that a run may hold: a metric `step` is none, and its name is also the record's own key.
        for name in filter(_plain, self._names):
            if (field := escape_tag(name_metric_field(name)).replace(":", _COLON)) != name:
                run = run.replace(f'"{name}":'.encode(), f'"{field}":'.encode())
        points = (
            run.translate(_EQUALS, b'"')
            .replace(_COLON.encode(), b":")
            .replace(b"},step=null,t=", b" ")
            .replace(b"},step=", b",step=")
            .replace(b",t=", b"i ")
        )
        between, first, last = b"e-9}\n{m={", len(b"{m={"), len(b"e-9}\n")
        return self._head + points[first:-last].replace(between, b"\n" + self._head) + b"\n"

    def _line(self, line: bytes) -> bytes:
        if not line.strip():
            return b""
        record = _parsed(line)
        if record is None:
            self.garbage += 1
            return b""
        fields = ",".join(filter(None, (self._field(name, value) for name, value in record["m"].items())))
        ns = self._time(record.get("t", 0))
        if not fields:
            return b""
        if not ns:
            self.garbage += 1
            return b""
        self._last = ns
        step = record.get("step")
        if type(step) is int and -MAX_STEP <= step < MAX_STEP:
            fields = f"{fields},{names.STEP}={step}i"
            kept = step < self._cut.step
        else:
            kept = self._at < self._cut.place
        head, abandoned = self._find_heads(record["tags"]) if "tags" in record else (self._head, self._abandoned)
        return (head if kept else abandoned) + f"{fields} {ns}\n".encode()

    def _write_heads(self, tags: Mapping[str, str]) -> tuple[bytes, bytes]:
        """Return how points with these tags begin, besides the file's own: kept, and abandoned."""
        ours = {name_metric_field(name): value for name, value in tags.items()} | self._tags
        tagged = write_tags(names.METRICS, ours)
        return tagged + f" {names.KEPT}=true,".encode(), tagged + f" {names.KEPT}=false,".encode()

    def _find_heads(self, tags: object) -> tuple[bytes, bytes]:
        picked = select_tags(tags) if isinstance(tags, dict) else {}
        series = tuple(sorted(picked.items()))
        if picked and series not in self._series and len(self._series) < MAX_SERIES:
            self._series[series] = self._write_heads(picked)
        return self._series.get(series, (self._head, self._abandoned))

    def _field(self, name: str, value: object) -> str:
        number = convert_to_number(float(value) if isinstance(value, Decimal) else value)
        if number is None or not is_metric_name(name) or (name not in self._names and len(self._names) >= MAX_FIELDS):
            self.garbage += 1
            return ""
        sent = convert_to_float(number)
        if sent is None:
            self.nonfinite += 1
            return ""
        if name not in self._names:
            self._names.add(name)
            self._run = _run_of(tuple(sorted(self._names))) if len(self._names) <= _FEW else None
        return f"{escape_tag(name_metric_field(name))}={sent!r}"

    def _time(self, at: Decimal | int) -> int:
        """Return a record's timestamp in nanoseconds; `at`: its time in seconds. 0 where it and all before lack one."""
        try:
            exact = _CONTEXT.scaleb(Decimal(at), 9)
            ns = int(exact) if 0 < exact < MAX_TIME else 0
        except DecimalException:
            ns = 0
        return max(ns, self._last + 1) if ns or self._last else 0


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line, parse_float=Decimal) if len(line) <= MAX_LINE else None
    except (ValueError, ArithmeticError, RecursionError):
        return None
    if not isinstance(record, dict) or not isinstance(record.get("m"), dict):
        return None
    # NaN and Infinity are floats: all other numbers with a point are decimals.
    return record if type(record.get("t", 0)) in (int, Decimal) else None
