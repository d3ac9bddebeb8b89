"""Results as a table of texts for people: what varies, and what came of it. The command line draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import floor, isfinite, log10

from monkey.metrics.summary import is_finite
from monkey.plan.explain import format_seconds
from monkey.plan.text.describe import format_value
from monkey.results.groups import MetricSpread, ResultGroup
from monkey.results.result_rows import ResultRow, Results
from monkey.spec.job.job_table import ParameterValue

#: Metrics shown unless all are asked for; the one that ranks is the first.
_METRICS = 4
#: Headings of what jobs used; memory in thousand millions of bytes.
_USED = {"cpus": "CPUs", "memory_bytes": "peak GB", "gpu_percent": "GPU %", "gpu_memory_bytes": "GPU peak GB"}
#: Whole numbers are shown whole below this.
_WHOLE = 10**15


@dataclass(frozen=True)
class ResultTable:
    """Texts, not yet escaped for any terminal; `right`: is the column of numbers?"""

    names: tuple[str, ...]
    right: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    #: What was left out, for a line below it: "3 parameters that do not vary, 2 metrics (--all shows them)".
    left_out: str = ""


def tabulate_results(results: Results, *, everything: bool = False) -> ResultTable:
    """Return one line a job: what varies over the sweep, metrics, state, time, job; `everything`: all columns."""
    parameters = _parameters(results, everything)
    metrics = results.metrics if everything else results.metrics[:_METRICS]
    why = everything and any(row.reason for row in results.rows)
    used = results.usages if everything else ()
    names = (
        *parameters,
        *metrics,
        "state",
        "time",
        *(_USED[name] for name in used),
        "job",
        *(("reason",) if why else ()),
    )
    numbers = (*(_numeric(results.rows, name) for name in parameters), *(True for _ in metrics))
    right = (*numbers, False, True, *(True for _ in used), False)
    rows = tuple(
        (
            *(_cell(row.parameters, name) for name in parameters),
            *(_metric(row, name) for name in metrics),
            # A job that met a goal of its sweep counts, one that met another condition does not: both are stopped.
            f"{row.state} (goal)" if row.goal else row.state,
            "" if row.seconds is None else _time(row.seconds),
            *(_use(row, name) for name in used),
            row.job,
            *((row.reason or "",) if why else ()),
        )
        for row in results.rows
    )
    return ResultTable(names, (*right, *((False,) if why else ())), rows, _left_out(results, parameters, metrics))


def tabulate_groups(
    groups: Sequence[ResultGroup], names: Sequence[str], results: Results, *, everything: bool = False
) -> ResultTable:
    """Return one line a group: its parameters, mean ± standard deviation of the metrics, how many jobs that is of."""
    metrics = results.metrics if everything else results.metrics[:_METRICS]
    rows = tuple(
        (
            *(_cell(made.parameters, name) for name in names),
            *(_spread(made.metrics.get(name)) for name in metrics),
            _n(made, metrics[0] if metrics else None),
        )
        for made in groups
    )
    right = (*(_numeric(results.rows, name) for name in names), *(True for _ in metrics), True)
    return ResultTable((*names, *metrics, "n"), right, rows, _left_out(results, results.parameters, metrics))


def format_number(value: float) -> str:
    """Return a measured number: five digits tell jobs apart; a whole number is whole while there is room."""
    if isinstance(value, int):
        return str(value) if abs(value) < _WHOLE else f"{Decimal(value):.4e}"
    return f"{value:.5g}"


def _parameters(results: Results, everything: bool) -> tuple[str, ...]:
    return tuple(name for name in results.parameters if everything or name in results.varying)


def _left_out(results: Results, parameters: Sequence[str], metrics: Sequence[str]) -> str:
    parts = []
    if constant := len(results.parameters) - len(parameters):
        parts.append("1 parameter that does not vary" if constant == 1 else f"{constant} parameters that do not vary")
    if more := len(results.metrics) - len(metrics):
        parts.append("1 metric" if more == 1 else f"{more} metrics")
    return f"{', '.join(parts)} (--all shows them)" if parts else ""


def _numeric(rows: Sequence[ResultRow], name: str) -> bool:
    kinds = {type(row.parameters[name]) for row in rows if name in row.parameters}
    return kinds <= {int, float}


def _cell(parameters: Mapping[str, ParameterValue], name: str) -> str:
    return format_value(parameters[name]) if name in parameters else ""


def _metric(row: ResultRow, name: str) -> str:
    value = row.metrics.get(name)
    if value is None:
        return ""
    # A run that diverged on the way says so, whatever its last finite value is.
    lost = row.summary.get(name, {}).get("nonfinite")
    return format_number(value) + (" (nan)" if lost and is_finite(value) else "")


def _use(row: ResultRow, name: str) -> str:
    value = row.usage.get(name)
    if value is None:
        return ""
    return f"{value / 1e9:.2f}" if name.endswith("_bytes") else f"{value:.3g}"


def _spread(spread: MetricSpread | None) -> str:
    if spread is None:
        return ""
    if spread.std is None:
        return format_number(spread.mean)
    if spread.std == 0 or not isfinite(spread.std):
        return f"{format_number(spread.mean)} ± {spread.std:g}"
    # The spread to two digits, the mean to the same place: more would be noise.
    places = 1 - floor(log10(spread.std))
    if not 0 <= places <= 8 or abs(spread.mean) >= 1e9:
        return f"{format_number(spread.mean)} ± {spread.std:.2g}"
    return f"{spread.mean:.{places}f} ± {spread.std:.{places}f}"


def _n(made: ResultGroup, metric: str | None) -> str:
    have = made.metrics[metric].n if metric is not None and metric in made.metrics else 0
    return str(have) if have == len(made.rows) else f"{have} of {len(made.rows)}"


def _time(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds < 60 else format_seconds(round(seconds))
