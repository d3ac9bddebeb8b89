"""Jobs with what they measured: gathered from a snapshot, chosen by a condition, ranked by the sweep's metric."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from math import nan
from typing import Any, Protocol

from monkey.errors import MonkeyError
from monkey.metrics.summary import find_best_value, is_finite
from monkey.spec.job.job_table import JobTable, ParameterValue
from monkey.spec.job.recipe import SweepSettings
from monkey.spec.parameters.conditions import ConditionError, parse_condition
from monkey.spec.yaml.mistakes import suggest_word

#: What jobs used of their machines, in the order of columns.
USAGES = ("cpus", "memory_bytes", "gpu_percent", "gpu_memory_bytes")


class MetricPick(StrEnum):
    """Which of a metric's values stands for the job."""

    LAST = "last"
    BEST = "best"


class SeenJob(Protocol):
    """What results need of a job; `monkey.protocol.status.store_snapshot.JobView` is one."""

    @property
    def state(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def metrics(self) -> Mapping[str, Mapping[str, Any]]: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def shared(self) -> Sequence[str]: ...
    @property
    def usage(self) -> Mapping[str, float]: ...
    @property
    def goal(self) -> bool: ...


@dataclass(frozen=True)
class ResultRow:
    """One job: what it was run with, and what came of it."""

    job: str
    state: str
    parameters: Mapping[str, ParameterValue]
    #: Metric to the one value that stands for it; NaN where no value of it was finite.
    metrics: Mapping[str, float]
    #: Metric to its whole summary.
    summary: Mapping[str, Mapping[str, Any]]
    seconds: float | None = None
    attempt: int = 0
    reason: str | None = None
    shared: tuple[str, ...] = ()
    #: What it used of its machine, as `monkey.metrics.usage` has it.
    usage: Mapping[str, float] = field(default_factory=dict)
    #: Was it stopped because it met a goal of its sweep?
    goal: bool = False

    @property
    def counts(self) -> bool:
        """Does it count in means, ranks and "best"? What failed, or has not ended, is no result yet."""
        return self.state == "succeeded" or self.goal

    @property
    def fields(self) -> dict[str, Any]:
        """What a condition may name; a parameter goes before a metric of its name, a metric before what we add."""
        seconds = {} if self.seconds is None else {"seconds": self.seconds}
        return {"state": self.state, "job": self.job, **seconds, **self.usage, **self.metrics, **self.parameters}


@dataclass(frozen=True)
class Results:
    """The rows of a sweep, and how they are to be judged."""

    rows: tuple[ResultRow, ...]
    #: The metric that ranks them, if the spec names one, and whether more of it is better.
    metric: str | None = None
    maximize: bool = False
    #: The parameters, in the spec's order; and those of them that are not the same in all jobs of the sweep.
    parameters: tuple[str, ...] = ()
    varying: frozenset[str] = frozenset()

    # Cached, because each reads all rows: asked for again with every row, they once took minutes of 100,000 jobs.
    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """All metrics, the one that ranks first."""
        found = {name for row in self.rows for name in row.metrics}
        first = (self.metric,) if self.metric is not None and self.metric in found else ()
        return (*first, *sorted(found.difference(first)))

    @cached_property
    def usages(self) -> tuple[str, ...]:
        """What is known of what jobs used, of `cpus`, `memory_bytes`, `gpu_percent`, `gpu_memory_bytes`."""
        return tuple(name for name in USAGES if any(name in row.usage for row in self.rows))

    @property
    def best(self) -> ResultRow | None:
        """The best job by the metric that ranks; None without a metric, or where no job that counts has a value."""
        metric = self.metric
        if metric is None:
            return None
        return next((row for row in self.rows if row.counts and is_finite(row.metrics.get(metric, nan))), None)


def gather_results(
    table: JobTable, settings: SweepSettings, jobs: Mapping[str, SeenJob], pick: MetricPick = MetricPick.LAST
) -> Results:
    """Return the results of all jobs of the table, best first."""
    metric, maximize = settings.metric, settings.maximize
    rows = [_row(job, parameters, jobs[job], pick, metric, maximize) for job, parameters in table.rows()]
    varying = frozenset(name for name, column in table.columns.items() if len(set(column.index)) > 1)
    return Results(tuple(rank_rows(rows, metric, maximize)), metric, maximize, tuple(table.columns), varying)


def explain_unmeasured(results: Results) -> str:
    """Say that jobs have succeeded and none of them logged the metric that ranks, with what they did log; or ""."""
    done = [row for row in results.rows if row.state == "succeeded"]
    if results.metric is None or not done or results.metric in results.metrics:
        return ""
    logged = f"; logged were: {', '.join(results.metrics)}" if results.metrics else ", or any other"
    return f"no job logged the metric {results.metric!r}{logged}"


def rank_rows(rows: Sequence[ResultRow], metric: str | None, maximize: bool) -> list[ResultRow]:
    """Return the rows best first; then those that do not count, best first, too.

    Of either, those without a value come last, in the order they came; without a metric all stay in that order.
    """
    if metric is None:
        return list(rows)
    return sorted(rows, key=lambda row: (not row.counts, make_rank_key(row.metrics.get(metric), maximize)))


def make_rank_key(value: float | None, maximize: bool) -> tuple[bool, float]:
    """Sort by this: NaN, and no value at all, come last."""
    if value is None or value != value:  # NaN; math.isnan takes no whole number beyond floats
        return (True, 0.0)
    return (False, -value if maximize else value)


def filter_results(results: Results, condition: str) -> Results:
    """Return the results that a `--where` holds for.

    It may name parameters, metrics, `state`, `job`, `seconds`, and what jobs used (USAGES). Raises MonkeyError for one
    that cannot be read, or does not fit the values.
    """
    names = {*results.parameters, *results.metrics, *results.usages, "state", "job", "seconds"}
    try:
        parsed = parse_condition(condition, names)
        rows = tuple(row for row in results.rows if parsed.holds(row.fields))
    except ConditionError as exc:
        raise MonkeyError(f"--where {condition!r}: {exc.message}", hint=exc.hint) from exc
    return Results(rows, results.metric, results.maximize, results.parameters, results.varying)


def check_known_name(name: str, names: Collection[str], option: str, what: str) -> None:
    """Raise MonkeyError unless the name is one of them."""
    if name not in names:
        raise MonkeyError(f"{option}: there is no {name!r}", hint=suggest_word(name, names, what))


def _row(
    job: str, parameters: dict[str, ParameterValue], seen: SeenJob, pick: MetricPick, metric: str | None, maximize: bool
) -> ResultRow:
    return ResultRow(
        job,
        str(seen.state),
        parameters,
        {
            name: _value(entry, pick if name == metric else MetricPick.LAST, maximize)
            for name, entry in seen.metrics.items()
        },
        seen.metrics,
        seen.seconds,
        seen.attempt,
        seen.reason,
        tuple(seen.shared),
        seen.usage,
        seen.goal,
    )


def _value(entry: Mapping[str, Any], pick: MetricPick, maximize: bool) -> float:
    value = entry.get("last")
    if pick is MetricPick.BEST:
        found = find_best_value(entry, maximize)
        value = found.value if found else None
    return value if isinstance(value, int | float) else nan
