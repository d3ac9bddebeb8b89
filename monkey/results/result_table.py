"""Results as a table of texts for people: what varies, and what came of it. The command line draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import floor, isfinite, log10

from monkey.plan.explain import format_seconds
from monkey.plan.text.describe import format_value
from monkey.results.groups import MetricSpread, ResultGroup
from monkey.results.result_rows import Results
from monkey.spec.job.column_names import ColumnNames
from monkey.spec.job.job_table import ABSENT, ParameterColumn

#: Metrics shown unless all are asked for; the one that ranks is the first.
_METRICS = 4
#: Headings of what jobs used; memory in thousand millions of bytes.
_USED = {"cpus": "CPUs", "memory_bytes": "peak GB", "gpu_percent": "GPU %", "gpu_memory_bytes": "GPU peak GB"}
#: Whole numbers are shown whole below this.
_WHOLE = 10**15
#: Where columns leave a narrow terminal: usage and metrics first, then the time, then parameters, the last ones first.
_USAGE_LEAVES, _METRIC_LEAVES, _TIME_LEAVES, _PARAMETER_LEAVES = 4000, 3000, 2000, 1000
#: What ± is, below a table of groups.
INTERVAL = "mean ± half of its 95 % t interval, over the n jobs that count"


@dataclass(frozen=True)
class ResultColumn:
    """Texts, not yet escaped for any terminal."""

    name: str
    cells: Sequence[str]
    #: Is it a column of numbers? These are never cut.
    right: bool = False
    #: Where the terminal is too narrow, the column with the highest number is left out first; 0: never.
    leaves: int = 0
    #: Is it the metric that ranks?
    ranks: bool = False


@dataclass(frozen=True)
class ResultTable:
    """The columns of a table, and what is said below it."""

    columns: tuple[ResultColumn, ...]
    #: What was left out: "3 parameters that do not vary, 2 metrics (--all shows them)".
    left_out: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The headings."""
        return tuple(column.name for column in self.columns)

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The lines, each as its cells."""
        return tuple(zip(*(column.cells for column in self.columns), strict=True))


def tabulate_results(results: Results, *, everything: bool = False, top: int | None = None) -> ResultTable:
    """Return one line a job: what varies over the sweep, metrics, state, time, job; `everything`: all columns."""
    places, usages = results.order[:top], results.usages if everything else ()
    parameters = tuple(name for name in results.parameters if everything or name in results.varying)
    metrics = results.metrics if everything else results.metrics[:_METRICS]
    named = results.name_columns(["time", *_USED.values()])
    jobs = [results.seen[at] for at in places]
    times = ["" if job.seconds is None else _time(job.seconds) for job in jobs]
    columns = [
        *(
            _tabulate_parameter(results, name, named, places, _PARAMETER_LEAVES + i)
            for i, name in enumerate(parameters)
        ),
        *(
            _tabulate_metric(results, name, named, places, _METRIC_LEAVES + i if i else 0)
            for i, name in enumerate(metrics)
        ),
        ResultColumn("state", _name_states(results, places)),
        ResultColumn("time", times, right=True, leaves=_TIME_LEAVES),
    ]
    for name in usages:
        columns.append(
            ResultColumn(_USED[name], [_use(job.usage.get(name), name) for job in jobs], True, _USAGE_LEAVES)
        )
    if everything and results.hosts:
        columns.append(ResultColumn("host", [job.host for job in jobs], leaves=_USAGE_LEAVES))
    columns.append(ResultColumn("job", [results.table.ids[at] for at in places]))
    if everything and any(results.states[at] == "failed" for at in places):
        columns.append(ResultColumn("signature", [results.sign(at) for at in places]))
    if everything and any(job.reason for job in jobs):
        columns.append(ResultColumn("reason", [job.reason or "" for job in jobs]))
    return ResultTable(tuple(columns), _left_out(results, parameters, metrics))


def tabulate_groups(
    groups: Sequence[ResultGroup], names: Sequence[str], results: Results, *, everything: bool = False
) -> ResultTable:
    """Return one line a group: its parameters, mean ± t interval of the metrics, how many jobs that is of."""
    metrics = results.metrics if everything else results.metrics[:_METRICS]
    named = results.name_columns(["n"])
    columns = []
    for name in names:
        cells = [format_value(made.parameters[name]) if name in made.parameters else "" for made in groups]
        columns.append(ResultColumn(named.parameters[name], cells, _is_numeric(results.table.columns[name])))
    for i, name in enumerate(metrics):
        spreads = [format_spread(made.metrics.get(name)) for made in groups]
        leaves = _METRIC_LEAVES + i if i else 0
        columns.append(ResultColumn(named.metrics[name], spreads, True, leaves, name == results.metric))
    first = metrics[0] if metrics else ""
    columns.append(ResultColumn("n", [_n(made, first) for made in groups], True))
    return ResultTable(tuple(columns), _left_out(results, results.parameters, metrics))


def format_number(value: float) -> str:
    """Return a measured number: five digits tell jobs apart; a whole number is whole while there is room."""
    if isinstance(value, int):
        return str(value) if abs(value) < _WHOLE else f"{Decimal(value):.4e}"
    return f"{value:.5g}"


def format_spread(spread: MetricSpread | None) -> str:
    """Return mean ± half of the interval; the mean alone where there is none, "" without a spread."""
    if spread is None:
        return ""
    half = spread.ci95
    if half is None:
        return format_number(spread.mean)
    if half == 0 or not isfinite(half):
        return f"{format_number(spread.mean)} ± {half:g}"
    # The interval to two digits, the mean to the same place: more would be noise.
    places = 1 - floor(log10(half))
    if places > 8 or abs(spread.mean) >= 1e9:
        return f"{format_number(spread.mean)} ± {format_number(float(f'{half:.2g}'))}"
    after = max(places, 0)
    # What is added turns -0 into 0.
    return f"{round(spread.mean, places) + 0.0:.{after}f} ± {round(half, places):.{after}f}"


def _tabulate_parameter(
    results: Results, name: str, named: ColumnNames, places: Sequence[int], leaves: int
) -> ResultColumn:
    column = results.table.columns[name]
    # Each value is made text once, not once a job.
    texts = ["", *map(format_value, column.values)]
    cells = [texts[column.index[at] - ABSENT] for at in places]
    return ResultColumn(named.parameters[name], cells, _is_numeric(column), leaves)


def _is_numeric(column: ParameterColumn) -> bool:
    return {type(value) for value in column.values} <= {int, float}


def _tabulate_metric(
    results: Results, name: str, named: ColumnNames, places: Sequence[int], leaves: int
) -> ResultColumn:
    values = results.values[name]
    cells = []
    for at in places:
        value = values[at]
        cell = "" if value is None else format_number(value)
        # A run that was not finite on the way says so, whatever stands for it.
        if cell and cell != "nan" and results.seen[at].metrics[name].get("nonfinite"):
            cell += " (nan)"
        if cell and results.steps:
            cell += _mark_step(results, name, at)
        cells.append(cell)
    return ResultColumn(named.metrics[name], cells, True, leaves, name == results.metric)


def _mark_step(results: Results, name: str, at: int) -> str:
    """Return what is said of a value that is not of the job's own step."""
    step = results.steps[name][at]
    if name in results.last or results.moments is None:
        return ""
    if step is None:
        return " (last)" if name != results.metric else ""
    return f" (step {step})" if step != results.moments[at] else ""


def _name_states(results: Results, places: Sequence[int]) -> Sequence[str]:
    """Return the state of each job, with why one counts that did not succeed, or one does not that did."""
    states, diverged, seen = results.states, results.diverged, results.seen
    notes = [" (diverged)" if diverged[at] else " (goal)" if seen[at].goal else "" for at in places]
    return [states[at] + note if note else states[at] for at, note in zip(places, notes, strict=True)]


def _left_out(results: Results, parameters: Sequence[str], metrics: Sequence[str]) -> str:
    parts = []
    if constant := len(results.parameters) - len(parameters):
        parts.append("1 parameter that does not vary" if constant == 1 else f"{constant} parameters that do not vary")
    if more := len(results.metrics) - len(metrics):
        parts.append("1 metric" if more == 1 else f"{more} metrics")
    return f"{', '.join(parts)} (--all shows them)" if parts else ""


def _use(value: float | None, name: str) -> str:
    if value is None:
        return ""
    return f"{value / 1e9:.2f}" if name.endswith("_bytes") else f"{value:.3g}"


def _n(made: ResultGroup, metric: str) -> str:
    have = made.metrics[metric].n if metric in made.metrics else 0
    return str(have) if have == len(made.jobs) else f"{have} of {len(made.jobs)}"


def _time(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds < 60 else format_seconds(round(seconds))
