"""What `monkey.log` wrote, as points: whole pieces of a file at once, since there is one agent for many jobs.

A record's time is its timestamp, to the nanosecond. Within a file timestamps only grow: one that does not (two records
of one instant, a clock that was set back) becomes the one before it and a nanosecond, because InfluxDB keeps one point
of a series and an instant. That depends on nothing but the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Context, Decimal, DecimalException
from typing import Any

from monkey.metrics import names
from monkey.metrics.log import valid_name
from monkey.metrics.points import MAX_TIME, as_float, escape, metric_field, tagged
from monkey.metrics.summary import MAX_LINE, MAX_METRICS, MAX_STEP, as_number

# A record as `monkey.log` itself writes it, of plain names, and whose numbers cannot be too large: a run of those is
# translated by exchanging its punctuation. Possessive (++): nothing is tried twice.
_NAME = rb'"(?!(?:step|t|m)")[^"\\\x00-\x1f\x7f-\xff]{1,200}+"'
_VALUE = rb"-?+(?:0|[1-9]\d{0,17}+)(?:\.\d{1,20}+)?+(?:e[+-]\d\d)?+"
_PAIR = _NAME + rb":" + _VALUE
_STEP = rb"(?:null|-?+(?:0|[1-9]\d{0,17}+))"
_RUN = re.compile(
    rb'(?:\{"m":\{' + _PAIR + rb"(?:," + _PAIR + rb')*+\},"step":' + _STEP + rb',"t":[1-8]\d{18}e-9\}\n)++'
)
_TIMES = re.compile(rb'"t":(\d{19})e-9')
_NAMES = re.compile(rb'[{,]"([^"]+)":[-\d]')
#: What stands in a record beside its metrics.
_OWN = {b"step", b"t"}
_CONTEXT = Context(prec=60)


class Records:
    """The records of one file, in their order."""

    def __init__(self, tags: Mapping[str, str], state: Mapping[str, Any] | None = None) -> None:
        """Begin with the file, or go on from a `state` of an earlier one; `tags`: see `points.metric_tags`."""
        state = state or {}
        self._head = tagged(names.METRICS, tags) + b" "
        self._last: int = state.get("last", 0)
        self._names: set[str] = set(state.get("names", ()))
        #: Lines that were no records, or values that were no numbers.
        self.garbage: int = state.get("garbage", 0)
        #: Values that were not finite.
        self.nonfinite: int = state.get("nonfinite", 0)

    def state(self) -> dict[str, Any]:
        """Return what `__init__` goes on from, as JSON."""
        names_ = sorted(self._names)
        return {"last": self._last, "names": names_, "garbage": self.garbage, "nonfinite": self.nonfinite}

    def convert(self, data: bytes) -> bytes:
        """Return the points of the file's next lines, all of them whole. Never raises."""
        parts = []
        at = 0
        while at < len(data):
            run = _RUN.match(data, at)
            if run:
                parts.append(self._run(run[0]))
                at = run.end()
            if at < len(data):
                end = data.find(b"\n", at) + 1 or len(data)
                parts.append(self._line(data[at:end]))
                at = end
        return b"".join(parts)

    def _run(self, run: bytes) -> bytes:
        times = _TIMES.findall(run)
        grows = int(times[0]) > self._last and times == sorted(times) and len(set(times)) == len(times)
        found = {name.decode() for name in set(_NAMES.findall(run)) - _OWN}
        if not grows or len(self._names | found) > MAX_METRICS:
            return b"".join(map(self._line, run.splitlines()))
        self._last = int(times[-1])
        self._names |= found
        for name in found:
            if (field := escape(metric_field(name))) != name:
                run = run.replace(f'"{name}":'.encode(), f'"{field}":'.encode())
        return (
            run.replace(b'{"m":{"', self._head)
            .replace(b'},"step":null,"t":', b" ")
            .replace(b'},"step":', b",step=")
            .replace(b',"t":', b"i ")
            .replace(b"e-9}\n", b"\n")
            .replace(b'":', b"=")
            .replace(b',"', b",")
        )

    def _line(self, line: bytes) -> bytes:
        if not line.strip():
            return b""
        record = _parsed(line)
        if record is None:
            self.garbage += 1
            return b""
        fields = ",".join(filter(None, (self._field(name, value) for name, value in record["m"].items())))
        ns = self._time(record.get("t"))
        if not fields:
            return b""
        if not ns:
            self.garbage += 1
            return b""
        self._last = ns
        step = record.get("step")
        if type(step) is int and -MAX_STEP <= step < MAX_STEP:
            fields = f"{fields},{names.STEP}={step}i"
        return self._head + f"{fields} {ns}\n".encode()

    def _field(self, name: str, value: object) -> str:
        number = as_number(float(value) if isinstance(value, Decimal) else value)
        if number is None or not valid_name(name) or (name not in self._names and len(self._names) >= MAX_METRICS):
            self.garbage += 1
            return ""
        sent = as_float(number)
        if sent is None:
            self.nonfinite += 1
            return ""
        self._names.add(name)
        return f"{escape(metric_field(name))}={sent!r}"

    def _time(self, at: object) -> int:
        """Return the timestamp of a record of time `at`; 0 where there is none, nor one before it."""
        ns = 0
        if isinstance(at, Decimal | int) and not isinstance(at, bool):
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
    return record if isinstance(record, dict) and isinstance(record.get("m"), dict) else None
