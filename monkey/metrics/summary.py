"""The summary of a job's metrics, which stays when the job is over: last, min, max and their steps, for each metric.

It reads the lines that `monkey.log` writes, and others that a job may have appended beside them. A line that is no
record is counted and skipped, because a broken metrics file must never cost a finished job its end.

A line: `{"t": seconds since the epoch, "step": integer or null, "m": {"loss": 0.3}}`. Numbers stay what they are:
whole ones whole, of any size, and floats to the last digit. A value that is not finite is "nan", "inf" or "-inf" in
quotes, as JSON has no such numbers. null, NaN and Infinity are read as the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from monkey.metrics.metric_log import is_metric_name

#: Bytes of the longest line that is read: a longer one is garbage, not a record to wait for.
MAX_LINE = 1 << 20
#: Names beyond this many are left out, unless a spec names them: the summary travels in the job's end, and in every
#: status.
MAX_METRICS = 1000
#: Steps beyond 64 bits are read as no step: InfluxDB and other readers could not hold them.
MAX_STEP = 1 << 63

_NONFINITE = {text: float(text) for sign in ("", "+", "-") for text in (sign + "nan", sign + "inf", sign + "infinity")}


class MetricSummary:
    """Folds metric records, fed as raw bytes in pieces of any size, into one small dict."""

    def __init__(
        self, watch: Callable[[str, float, int | None], None] | None = None, needed: Collection[str] = ()
    ) -> None:
        """Start without records; `needed`: metrics that are kept however many others there are.

        `watch` receives every value that is kept, finite or not: the metric's name, the value, its step.
        """
        #: Number of lines that were no records, and of values that were no numbers.
        self.garbage = 0
        #: Whether values were left out because there were too many names.
        self.crowded = False
        self._needed = needed
        self._tails: dict[str, bytes] = {}
        self._skipping: set[str] = set()
        self._metrics: dict[str, _Metric] = {}
        self._watch = watch

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

    def finish(self) -> dict[str, dict[str, Any]]:
        """Read the last lines, which lack their newline, and return the result; nothing is fed afterwards."""
        for source, tail in self._tails.items():
            if tail and source not in self._skipping:
                self._line(tail, source)
        self._tails.clear()
        return self.result()

    def result(self) -> dict[str, dict[str, Any]]:
        """Return the summary of each metric, by name, sorted.

        - last, min, max: of the finite values; None without one.
        - step, best_min_step, best_max_step: the steps of these three; None where no step was given.
        - count, nonfinite: the number of finite values, and of others.
        """
        return {name: metric.result() for name, metric in sorted(self._metrics.items())}

    def _line(self, line: bytes, source: str) -> None:
        if not line.strip():
            return
        try:
            record = json.loads(line) if len(line) <= MAX_LINE else None
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict) or not isinstance(metrics := record.get("m"), dict):
            self.garbage += 1
            return
        step, at = record.get("step"), record.get("t")
        step = step if type(step) is int and -MAX_STEP <= step < MAX_STEP else None
        at = float(at) if type(at) is float or (type(at) is int and abs(at) < 1 << 53) else 0.0
        for name, value in metrics.items():
            self._value(name, value, step, at, source)

    def _value(self, name: str, value: object, step: int | None, at: float, source: str) -> None:
        number = convert_to_number(value)
        metric = self._metrics.get(name)
        if metric is None:
            if number is None or not is_metric_name(name):
                self.garbage += 1
                return
            if len(self._metrics) >= MAX_METRICS and name not in self._needed:
                self.crowded = True
                return
            metric = self._metrics[name] = _Metric()
        if number is not None and self._watch is not None:
            self._watch(name, number, step)
        if number is None:
            self.garbage += 1
        elif not is_finite(number):
            metric.nonfinite += 1
        else:
            metric.add(number, step, at, source)


class BestValue(NamedTuple):
    """The best value of a metric, and its step where one was given."""

    value: float
    step: int | None


def find_best_value(entry: Mapping[str, Any], maximize: bool) -> BestValue | None:
    """Return the best value of one metric of a summary, or None where no finite value was logged."""
    value = entry.get("max" if maximize else "min")
    return None if value is None else BestValue(value, entry.get("best_max_step" if maximize else "best_min_step"))


class _Metric:
    __slots__ = ("at", "count", "last", "max", "max_step", "min", "min_step", "nonfinite", "source", "step")

    def __init__(self) -> None:
        # A float may be an int here and everywhere: as exact as it was logged.
        self.last: float | None = None
        self.min = float("inf")
        self.max = float("-inf")
        self.step: int | None = None
        self.min_step: int | None = None
        self.max_step: int | None = None
        self.count = 0
        self.nonfinite = 0
        self.at = float("-inf")
        self.source = ""

    def add(self, value: float, step: int | None, at: float, source: str) -> None:
        self.count += 1
        # A clock that was set back must not make an old value of the same process the last one.
        if source == self.source or at >= self.at or self.last is None:
            self.last, self.step, self.at, self.source = value, step, at, source
        if value < self.min:
            self.min, self.min_step = value, step
        if value > self.max:
            self.max, self.max_step = value, step

    def result(self) -> dict[str, Any]:
        return {
            "last": self.last,
            "min": self.min if self.count else None,
            "max": self.max if self.count else None,
            "step": self.step,
            "best_min_step": self.min_step,
            "best_max_step": self.max_step,
            "count": self.count,
            "nonfinite": self.nonfinite,
        }


def is_finite(value: float) -> bool:
    """Return whether the value is finite; math.isfinite would raise OverflowError for large whole numbers."""
    return value - value == 0


def convert_to_number(value: object) -> float | None:
    """Return a value of a record as a number, NaN and infinities included; None where it is no number."""
    if type(value) is float:
        return value
    if value is None:
        return float("nan")
    if isinstance(value, str):
        return _NONFINITE.get(value.lower())
    return int(value) if isinstance(value, int) else None
