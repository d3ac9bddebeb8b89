"""Jobs with what they measured: gathered from a snapshot, chosen by a condition, ranked by the sweep's metric.

Results are columns, one entry a job of the table: of a hundred thousand jobs, an object each took most of the time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import nan
from typing import Any, NamedTuple, Protocol, overload

from monkey.errors import MonkeyError
from monkey.metrics.summary import find_job_value, has_diverged, is_finite, is_result
from monkey.plan.text.describe import is_replicate
from monkey.results.failure_kinds import sign_failure
from monkey.spec.job.column_names import USAGES, ColumnNames, list_spellings, mark_last_values, name_columns
from monkey.spec.job.job_table import JobTable, ParameterValue
from monkey.spec.job.recipe import MetricTake, SweepSettings
from monkey.spec.yaml.mistakes import suggest_word

#: A metric of all jobs: None where the job did not log it, NaN where no value of it that is finite stands for the job.
MetricColumn = Sequence[float | None]


class SeenJob(Protocol):
    """What results need of a job; `monkey.protocol.status.store_snapshot.JobView` is one."""

    @property
    def state(self) -> str: ...
    @property
    def number(self) -> int: ...
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
    @property
    def host(self) -> str: ...
    @property
    def facts(self) -> str: ...
    @property
    def exit_code(self) -> int | None: ...
    @property
    def log_tail(self) -> Sequence[str]: ...


class ResultRow(NamedTuple):
    """One job: what it was run with, and what came of it."""

    job: str
    state: str
    parameters: Mapping[str, ParameterValue]
    #: Metric to the one value that stands for it; NaN where that is not finite.
    metrics: Mapping[str, float]
    #: Metric to its whole summary.
    summary: Mapping[str, Mapping[str, Any]]
    seconds: float | None
    attempt: int
    reason: str | None
    shared: Sequence[str]
    #: What it used of its machine, as `monkey.metrics.usage` has it.
    usage: Mapping[str, float]
    #: Does it count in means, ranks and "best"?
    counts: bool
    #: Was the last value of the metric that ranks not finite?
    diverged: bool
    #: The machine of its newest attempt; "" while that is not known.
    host: str
    #: The signature of its failure; "" for a job that did not fail.
    signature: str
    #: What its result came from, by `facts.NAME`; {} unless the results were given facts.
    facts: Mapping[str, Any]
    #: Metric to the step of its value, None for a value without one; {} where values are the last ones.
    steps: Mapping[str, int | None]


@dataclass(frozen=True)
class Results:
    """The jobs of a sweep, and how they are to be judged; a *place* is a job's row in the table."""

    table: JobTable
    #: What is known of each job, by place, as are all columns below.
    seen: Sequence[SeenJob]
    #: The metric that ranks them, if the spec names one, and whether more of it is better.
    metric: str | None
    maximize: bool
    #: Metric to its column; of the metric that ranks, the value that `take` says, of others the last, or see `moments`.
    values: Mapping[str, MetricColumn]
    #: Is the last value of the metric that ranks not finite?
    diverged: Sequence[bool]
    #: Does the job count in means, ranks and "best"? What failed, diverged or has not ended is no result.
    counts: Sequence[bool]
    #: The places of those that were chosen, best first.
    order: Sequence[int]
    #: First digits of a hash of facts to these, by `facts.NAME`.
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: What is not shown: ("parameter" or "metric", its name).
    hidden: frozenset[tuple[str, str]] = frozenset()
    #: The parameters that the spec declares to be repeats.
    declared_repeats: Collection[str] = ()
    #: Which value of the metric that ranks stands for a job, and metrics whose last value stands whatever that is.
    take: MetricTake = "last"
    last: Collection[str] = ()
    #: The step of each job that all other values are of; None until `read_step_values` has read them.
    moments: Sequence[int | None] | None = None
    #: Metric to the steps of its values, with `moments`. One that is not the job's own is marked.
    steps: Mapping[str, Sequence[int | None]] = field(default_factory=dict)

    # Cached, because each reads all jobs: asked for again with every row, they once took minutes of 100,000 jobs.
    @cached_property
    def states(self) -> Sequence[str]:
        """The state of each job."""
        return [str(one.state) for one in self.seen]

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The parameters, in the spec's order."""
        return tuple(name for name in self.table.columns if ("parameter", name) not in self.hidden)

    @cached_property
    def varying(self) -> frozenset[str]:
        """Those parameters that are not the same in all jobs of the sweep."""
        return self.table.varying.intersection(self.parameters)

    @cached_property
    def repeats(self) -> frozenset[str]:
        """The parameters that only run a configuration again: those that the spec declares, or `seed` and the like."""
        return frozenset(name for name in self.table.columns if name in self.declared_repeats or is_replicate(name))

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """All metrics of the chosen jobs, the one that ranks first."""
        shown = {name: column for name, column in self.values.items() if ("metric", name) not in self.hidden}
        found = {name for name, column in shown.items() if any(column[at] is not None for at in self.order)}
        first = (self.metric,) if self.metric is not None and self.metric in found else ()
        return (*first, *sorted(found.difference(first)))

    @cached_property
    def columns(self) -> ColumnNames:
        """The columns of all parameters and metrics in files and conditions, hidden or not."""
        return self.name_columns()

    def name_columns(self, ours: Collection[str] = (), parts: Sequence[str] = ("",)) -> ColumnNames:
        """Return the columns in a table, as `monkey.spec.job.column_names` has them; last values say that they are."""
        if self.moments is not None:
            parts = [*parts, ".step"]
        named = name_columns(self.table.columns, self.values, ours, parts)
        mixed = self.take == "best" and self.moments is None
        return mark_last_values(named, (self.metric, *self.last)) if mixed else named

    @cached_property
    def marked(self) -> Sequence[str]:
        """The metric that ranks, and others with values of another step than its; none where values are the last."""
        own = self.moments
        if own is None:
            return []
        found = []
        for name in self.metrics:
            steps = self.steps[name]
            moved = (self.values[name][at] for at in self.order if steps[at] != own[at])
            if name == self.metric or any(value is not None for value in moved):
                found.append(name)
        return found

    @cached_property
    def usages(self) -> tuple[str, ...]:
        """What is known of what jobs used, of `cpus`, `memory_bytes`, `gpu_percent`, `gpu_memory_bytes`."""
        known = {name for at in self.order for name in self.seen[at].usage}
        return tuple(name for name in USAGES if name in known)

    @cached_property
    def hosts(self) -> bool:
        """Is the machine of any chosen job known?"""
        return any(self.seen[at].host for at in self.order)

    @property
    def rows(self) -> Sequence[ResultRow]:
        """The chosen jobs one by one, best first; each is made when it is asked for."""
        return _Rows(self)

    @property
    def best(self) -> ResultRow | None:
        """The best job by the metric that ranks; None without a metric, or where no job that counts has a value."""
        column = self.values.get(self.metric) if self.metric is not None else None
        if column is None:
            return None
        found = (at for at in self.order if self.counts[at] and _has_value(column[at]))
        return next(map(self.row, found), None)

    def row(self, at: int) -> ResultRow:
        """Return the job at a place."""
        seen, parameters = self.seen[at], self.table.parameters(at)
        signature = self.sign(at)
        shown = seen.metrics
        if self.hidden:
            parameters = {name: parameters[name] for name in self.parameters if name in parameters}
            shown = {name: shown[name] for name in self.metrics if name in shown}
        return ResultRow(
            self.table.ids[at],
            self.states[at],
            parameters,
            {name: value for name in shown if (value := self.values[name][at]) is not None},
            shown,
            seen.seconds,
            seen.number,
            seen.reason,
            seen.shared,
            seen.usage,
            self.counts[at],
            self.diverged[at],
            seen.host,
            signature,
            self.facts.get(seen.facts, {}),
            {name: self.steps[name][at] for name in shown if name in self.steps},
        )

    def sign(self, at: int) -> str:
        """Return the signature of the failure of the job at a place; "" where it did not fail."""
        return sign_failure(self.seen[at], self.table.parameters(at)) if self.states[at] == "failed" else ""

    def choose(self, order: Sequence[int]) -> Results:
        """Return the results of these places, in their order."""
        return replace(self, order=order)


class _Rows(Sequence[ResultRow]):
    def __init__(self, results: Results) -> None:
        self._results = results

    @overload
    def __getitem__(self, at: int) -> ResultRow: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[ResultRow]: ...
    def __getitem__(self, at: int | slice) -> ResultRow | Sequence[ResultRow]:
        if isinstance(at, slice):
            return _Rows(self._results.choose(self._results.order[at]))
        return self._results.row(self._results.order[at])

    def __iter__(self) -> Iterator[ResultRow]:
        return map(self._results.row, self._results.order)

    def __len__(self) -> int:
        return len(self._results.order)


def gather_results(
    table: JobTable, settings: SweepSettings, jobs: Mapping[str, SeenJob], take: MetricTake | None = None
) -> Results:
    """Return the results of all jobs of the table, best first; `take` overrides the spec's own."""
    metric, maximize = settings.metric, settings.maximize
    seen = [jobs[job] for job in table.ids]
    values = _gather_values(seen, metric, take or settings.take, maximize=maximize)
    diverged = [metric is not None and has_diverged(one.metrics.get(metric, {})) for one in seen]
    counts = [is_result(one.state, goal=one.goal, diverged=lost) for one, lost in zip(seen, diverged, strict=True)]
    order: Sequence[int] = range(len(seen))
    if metric is not None:
        order = rank_places(values.get(metric, [None] * len(seen)), counts, maximize=maximize)
    found = Results(table, seen, metric, maximize, values, diverged, counts, order, declared_repeats=settings.repeats)
    return replace(found, take=take or settings.take, last=settings.last)


def _gather_values(
    seen: Sequence[SeenJob], metric: str | None, take: MetricTake, *, maximize: bool
) -> dict[str, MetricColumn]:
    columns: dict[str, list[float | None]] = {}
    for at, one in enumerate(seen):
        for name, entry in one.metrics.items():
            column = columns.get(name)
            if column is None:
                column = columns[name] = [None] * len(seen)
            value = find_job_value(entry, take if name == metric else "last", maximize=maximize)
            column[at] = nan if value is None else value
    return dict(columns)


def rank_places(values: MetricColumn, counts: Sequence[bool], *, maximize: bool) -> list[int]:
    """Return the places of jobs best first; then those that do not count, best first, too.

    Of either, those without a value come last, in the order they came.
    """
    order: list[int] = []
    for counting in (True, False):
        places = [at for at, counted in enumerate(counts) if counted is counting]
        # A sort by one key: a tuple for each of a hundred thousand jobs takes five times as long.
        with_value = [at for at in places if _has_value(values[at])]
        order += sorted(with_value, key=values.__getitem__, reverse=maximize)  # type: ignore[arg-type]  # none of these is None
        order += [at for at in places if not _has_value(values[at])]
    return order


def _has_value(value: float | None) -> bool:
    return value is not None and is_finite(value)


def explain_unmeasured(results: Results) -> str:
    """Say that jobs have succeeded and none of them logged the metric that ranks, with what they did log; or ""."""
    if results.metric is None or results.metric in results.metrics or "succeeded" not in results.states:
        return ""
    logged = f"; logged were: {', '.join(results.metrics)}" if results.metrics else ", or any other"
    return f"no job logged the metric {results.metric!r}{logged}"


def find_named(name: str, names: Collection[str], columns: Mapping[str, str], kind: str, option: str) -> str:
    """Return which of these parameters or metrics (`kind`) an option names, bare or by its column.

    Raises MonkeyError where it is none.
    """
    found = list_spellings(columns, kind).get(name, name)
    check_known_name(found, names, option, kind)
    return found


def check_known_name(name: str, names: Collection[str], option: str, what: str) -> None:
    """Raise MonkeyError unless the name is one of them."""
    if name not in names:
        raise MonkeyError(f"{option}: there is no {name!r}", hint=suggest_word(name, names, what))
