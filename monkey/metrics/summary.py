"""The summary of a job's metrics, which stays when the job is over: last, min, max and their steps, for each metric."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from monkey.metrics.metric_log import is_metric_name
from monkey.metrics.record_feed import MAX_METRICS, RecordFeed, convert_to_number
from monkey.spec.job.recipe import MetricTake


class MetricSummary(RecordFeed):
    """Folds metric records, fed as raw bytes in pieces of any size, into one small dict."""

    def __init__(
        self, watch: Callable[[str, float, int | None], None] | None = None, needed: Collection[str] = ()
    ) -> None:
        """Start without records; `needed`: metrics that are kept however many others there are.

        `watch` receives every value that is kept, finite or not: the metric's name, the value, its step.
        """
        super().__init__()
        #: Whether values were left out because there were too many names.
        self.crowded = False
        self._needed = needed
        self._metrics: dict[str, _Metric] = {}
        self._watch = watch

    def finish(self) -> dict[str, dict[str, Any]]:
        """Read the last lines, which lack their newline, and return the result; nothing is fed afterwards."""
        self.end_lines()
        return self.result()

    def result(self) -> dict[str, dict[str, Any]]:
        """Return the summary of each metric, by name, sorted.

        - last: the value that was logged last; None where that one is not finite: the metric diverged.
        - min, max: of the finite values; None without one.
        - step, best_min_step, best_max_step: the steps of these three; None where no step was given.
        - count, nonfinite: the number of finite values, and of others.
        """
        return {name: metric.result() for name, metric in sorted(self._metrics.items())}

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


def is_result(state: str, *, goal: bool, diverged: bool) -> bool:
    """Return whether a job counts in means, ranks and "best": others rank behind those that do, wherever they stand.

    `goal`: it was stopped because it met its sweep's goal; `diverged`: as `has_diverged` says of the metric that ranks.
    """
    return (state == "succeeded" or goal) and not diverged


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
