"""The results of a sweep for other programs: `--json` and `--csv`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from monkey.metrics.summary import is_finite
from monkey.results.groups import ResultGroup
from monkey.results.result_rows import ResultRow, Results
from monkey.spec.command.command import format_argument
from monkey.spec.job.job_table import ParameterValue

#: Beginnings of a cell that a spreadsheet takes for a formula; some spreadsheets take the wide forms, too.
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")
#: Columns for a metric over a group, in this order.
SPREAD = ("mean", "std", "min", "max", "n")


def serialize_row(row: ResultRow) -> dict[str, Any]:
    """Return a row of `results --json`, with these keys:

    - `job`, `state`, `seconds`, `attempt`, `reason`
    - `counts`: whether the job counts in means, ranks and "best"
    - `parameters`: dotted name to value
    - `metrics`: name to number; null where no value was finite
    - `summary`: name to {last, min, max, step, …}
    - `shared`: other sweeps that want the job
    - `usage`: cpus, memory_bytes, gpu_percent, gpu_memory_bytes, as far as they are known
    """
    return {
        "job": row.job,
        "state": row.state,
        "counts": row.counts,
        "parameters": dict(row.parameters),
        "metrics": {name: value if is_finite(value) else None for name, value in row.metrics.items()},
        "summary": {name: dict(entry) for name, entry in row.summary.items()},
        "seconds": row.seconds,
        "attempt": row.attempt,
        "reason": row.reason,
        "shared": list(row.shared),
        "usage": dict(row.usage),
    }


def format_results_csv(results: Results) -> str:
    """Return all rows as CSV (RFC 4180), with these columns:

    - job, state, every parameter, every metric;
    - counts (true or false), seconds, attempt;
    - the usage (cpus, memory_bytes, gpu_percent, gpu_memory_bytes) that any job has;
    - reason.

    A metric with the name of another column is prefixed "metric.". A parameter that a job lacks is empty.
    """
    metrics = results.metrics
    taken = {"job", "state", "counts", "seconds", "attempt", "reason", *results.parameters, *results.usages}
    head = [
        *("job", "state", *results.parameters),
        *(f"metric.{name}" if name in taken else name for name in metrics),
        *("counts", "seconds", "attempt", *results.usages, "reason"),
    ]
    rows = (
        [
            row.job,
            row.state,
            *(_parameter(row.parameters, name) for name in results.parameters),
            *(_number(row.metrics.get(name)) for name in metrics),
            format_argument(row.counts),
            _number(row.seconds),
            str(row.attempt),
            *(_number(row.usage.get(name)) for name in results.usages),
            escape_formula(row.reason or ""),
        ]
        for row in results.rows
    )
    return _csv(head, rows)


def format_groups_csv(groups: Sequence[ResultGroup], names: Sequence[str], metrics: Sequence[str]) -> str:
    """Return groups as CSV: the parameters `names`, the number of jobs, and mean, std, min, max, n of each metric."""
    head = [*names, "jobs", *(f"{metric}.{part}" for metric in metrics for part in SPREAD)]
    rows = (
        [
            *(_parameter(made.parameters, name) for name in names),
            str(len(made.rows)),
            *(cell for metric in metrics for cell in _spread(made, metric)),
        ]
        for made in groups
    )
    return _csv(head, rows)


def escape_formula(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula: such a text gets an apostrophe, unless it is a number."""
    if not text.startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def _csv(head: Iterable[str], rows: Iterable[list[str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([escape_formula(name) for name in head])
    writer.writerows(rows)
    # A lone half of a surrogate pair is text in JSON and YAML, but in no encoding.
    return out.getvalue().encode("utf-8", "replace").decode()


def _parameter(parameters: Any, name: str) -> str:
    if name not in parameters:
        return ""
    value: ParameterValue = parameters[name]
    # Numbers are ours to write; a text is whatever a spec says.
    return escape_formula(value) if isinstance(value, str) else format_argument(value)


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)


def _spread(made: ResultGroup, metric: str) -> list[str]:
    of = made.metrics.get(metric)
    if of is None:
        return [*("" for _ in SPREAD[:-1]), "0"]
    return [*map(_number, (of.mean, of.std, of.min, of.max)), str(of.n)]
