"""The verdict on a check: outputs and last metrics of a second run, held against the recorded ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from math import isfinite
from typing import Any

from monkey.protocol.entries import EndEntry
from monkey.results.checks.fact_differences import FactDifference
from monkey.results.curves.curve import Curve


class CheckVerdict(StrEnum):
    """The verdict on one check."""

    #: All outputs and all last metrics are the same.
    IDENTICAL = "identical"
    #: All metrics are within a tolerance that was asked for.
    WITHIN = "equal within tolerance"
    DIFFERS = "differs"
    #: It did not succeed, though the recorded job did.
    FAILED = "failed"
    UNFINISHED = "unfinished"

    @property
    def well(self) -> bool:
        """Does it confirm the record?"""
        return self in (CheckVerdict.IDENTICAL, CheckVerdict.WITHIN)


@dataclass(frozen=True)
class CheckTolerance:
    """The tolerance of a comparison: without any, everything must be the same."""

    #: Metric to the relative difference that it may have; "" is for all others.
    relative: Mapping[str, float] = field(default_factory=dict)
    #: Names, or patterns of names, of metrics and outputs that are not compared.
    ignored: Sequence[str] = ()

    def ignores(self, name: str) -> bool:
        """Is the metric or output of this name left out?"""
        return any(fnmatchcase(name, pattern) for pattern in self.ignored)

    def limit(self, metric: str) -> float:
        """Return the relative difference that the metric may have."""
        return self.relative.get(metric, self.relative.get("", 0.0))


@dataclass(frozen=True)
class MetricDifference:
    """A metric whose last value is another now. None: it diverged, or it is missing."""

    name: str
    recorded: float | None
    now: float | None
    #: Is the difference within its tolerance?
    within: bool = False
    #: The first step at which the curves part; None where that is not known.
    step: int | None = None

    @property
    def delta(self) -> float | None:
        """The difference: positive where the value is larger now."""
        return None if self.recorded is None or self.now is None else self.now - self.recorded


@dataclass(frozen=True)
class OutputDifference:
    """An output with other bytes. The SHA-256 is "" where there is no such file."""

    path: str
    recorded: str
    now: str


@dataclass(frozen=True)
class CheckedJob:
    """A check of one job, and what came of it."""

    #: The job that ran once more, and the one whose record it is held against.
    check: str
    job: str
    verdict: CheckVerdict
    metrics: Sequence[MetricDifference] = ()
    outputs: Sequence[OutputDifference] = ()
    #: What is not the same of what both results came from; empty where nothing differs, or nothing is known.
    facts: Sequence[FactDifference] = ()
    #: Are the facts of both known?
    facts_known: bool = False
    #: Why it did not succeed; "" where it did.
    reason: str = ""


def compare_ends(
    recorded: EndEntry, now: EndEntry, tolerance: CheckTolerance
) -> tuple[CheckVerdict, list[MetricDifference], list[OutputDifference]]:
    """Hold the end of a check against the recorded end of its job.

    Outputs must have the same bytes. Where a tolerance is asked for and metrics can bear it out, they need not: a file
    has all digits of what was computed.
    """
    metrics = list(_compare_metrics(recorded.metrics, now.metrics, tolerance))
    outputs = [
        OutputDifference(path, recorded.outputs.get(path, ""), now.outputs.get(path, ""))
        for path in sorted({*recorded.outputs, *now.outputs})
        if recorded.outputs.get(path) != now.outputs.get(path) and not tolerance.ignores(path)
    ]
    if not metrics and not outputs:
        return CheckVerdict.IDENTICAL, metrics, outputs
    compared = [name for name in recorded.metrics if not tolerance.ignores(name)]
    bears = bool(compared) and all(tolerance.limit(name) > 0 for name in compared)
    there = all(one.recorded and one.now for one in outputs)
    if all(one.within for one in metrics) and (not outputs or (bears and there)):
        return CheckVerdict.WITHIN, metrics, outputs
    return CheckVerdict.DIFFERS, metrics, outputs


def _compare_metrics(
    recorded: Mapping[str, Any], now: Mapping[str, Any], tolerance: CheckTolerance
) -> Iterator[MetricDifference]:
    for name in sorted({*recorded, *now}):
        if tolerance.ignores(name):
            continue
        before, after = _read_last(recorded.get(name)), _read_last(now.get(name))
        if before == after and (name in recorded) == (name in now):
            continue
        within = False
        if before is not None and after is not None:
            within = abs(after - before) <= tolerance.limit(name) * max(abs(before), abs(after))
        yield MetricDifference(name, before, after, within)


def _read_last(summary: object) -> float | None:
    """Return a metric's last value; None for one that diverged, and for what an agent never wrote."""
    value = summary.get("last") if isinstance(summary, dict) else None
    try:
        return value if isinstance(value, int | float) and isfinite(value) else None
    except OverflowError:  # a whole number that no float can hold
        return None


def find_parting_step(recorded: Curve, now: Curve) -> int | None:
    """Return the first step at which two curves of a metric part; None where they do not, or that has no step."""
    before, after = (zip(curve.steps, curve.values, strict=True) for curve in (recorded, now))
    for (step, value), (other_step, other) in zip(before, after, strict=False):
        if step != other_step or (value != other and not (value != value and other != other)):  # NaN is like NaN
            return min((each for each in (step, other_step) if each is not None), default=None)
    rest = max(recorded, now, key=len).steps[min(len(recorded), len(now)) :]
    return rest[0] if rest else None
