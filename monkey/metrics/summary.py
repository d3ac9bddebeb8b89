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
from monkey.spec.job.recipe import MetricTake

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
        #: Of each file, the step of its first record that has one.
        self._first_steps: dict[str, int] = {}
        #: Records at or after this step are left out.
        self.until: int | None = None
        #: Are records without a step left out?
        self.stepped_only = False
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

        - last: the value that was logged last; None where that one is not finite: the metric diverged.
        - min, max: of the finite values; None without one.
        - step, best_min_step, best_max_step: the steps of these three; None where no step was given.
        - count, nonfinite: the number of finite values, and of others.
        """
        return {name: metric.result() for name, metric in sorted(self._metrics.items())}

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
        if not isinstance(record, dict) or not isinstance(metrics := record.get("m"), dict):
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
        else:
            metric.add(number, step, at, source)


def merge_summaries(
    before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the summary of records that came in two parts, `before` and then `after`."""
    return {
        name: _merge_entries(before[name], after[name])
        if name in before and name in after
        else dict(after[name] if name in after else before[name])
        for name in sorted({*before, *after})
    }


def _merge_entries(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    last = after if after["count"] or after["nonfinite"] else before
    lowest = after if before["min"] is None or (after["min"] is not None and after["min"] < before["min"]) else before
    highest = after if before["max"] is None or (after["max"] is not None and after["max"] > before["max"]) else before
    return {
        "last": last["last"],
        "min": lowest["min"],
        "max": highest["max"],
        "step": last["step"],
        "best_min_step": lowest["best_min_step"],
        "best_max_step": highest["best_max_step"],
        "count": before["count"] + after["count"],
        "nonfinite": before["nonfinite"] + after["nonfinite"],
    }


class BestValue(NamedTuple):
    """The best value of a metric, and its step where one was given."""

    value: float
    step: int | None


def find_best_value(entry: Mapping[str, Any], maximize: bool) -> BestValue | None:
    """Return the best value of one metric of a summary, or None where no finite value was logged."""
    value = entry.get("max" if maximize else "min")
    return None if value is None else BestValue(value, entry.get("best_max_step" if maximize else "best_min_step"))


def find_job_value(entry: Mapping[str, Any], take: MetricTake, *, maximize: bool) -> float | None:
    """Return the value of a metric that stands for a job: the last or the best one; None where it is not finite.

    Results are ranked by it, and InfluxDB's points of jobs have it.
    """
    if take == "best":
        found = find_best_value(entry, maximize)
        return found.value if found else None
    last = entry.get("last")
    return last if isinstance(last, int | float) else None


def has_diverged(entry: Mapping[str, Any]) -> bool:
    """Return whether the metric was logged, and its last value is not finite; its best value then means nothing."""
    return bool(entry) and entry.get("last") is None


class _Metric:
    __slots__ = ("at", "count", "last", "max", "max_step", "min", "min_step", "nonfinite", "source", "step")

    def __init__(self) -> None:
        # A float may be an int here and everywhere: as exact as it was logged. None once the metric diverged.
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
        finite = is_finite(value)
        # A clock that was set back must not make an old value of the same process the last one.
        if source == self.source or at >= self.at or not (self.count or self.nonfinite):
            # The last finite value would hide that the metric diverged after it.
            self.last, self.step, self.at, self.source = value if finite else None, step, at, source
        if not finite:
            self.nonfinite += 1
            return
        self.count += 1
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
