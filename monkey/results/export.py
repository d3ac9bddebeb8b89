"""The results of a sweep for other programs: `--json` and `--csv`, in pieces of many lines."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from monkey.metrics.summary import is_finite
from monkey.results.groups import ResultGroup
from monkey.results.result_rows import ResultRow, Results
from monkey.spec.command.command import format_argument
from monkey.spec.job.job_table import ABSENT, ParameterColumn, ParameterValue

#: Beginnings of a cell that a spreadsheet takes for a formula; some spreadsheets take the wide forms, too. Where a
#: semicolon or a tab separates cells, one begins behind it, whatever quotes stand around ours.
_FORMULA = re.compile('^(?=[=+@\t\r\n＝＋－＠-])|(?<!^)[;\t\r\n]"*(?=[=+@＝＋－＠-])')
#: Columns for a metric over a group, in this order; the interval of its mean is mean ± ci95.
SPREAD = ("mean", "std", "ci95", "min", "max", "n")
#: Lines of a piece: few enough to weigh nothing, many enough to be written at once.
LINES = 1_000


def serialize_row(row: ResultRow) -> dict[str, Any]:
    """Return a row of `results --json`, with these keys:

    - `job`, `state`, `seconds`, `attempt`, `reason`
    - `counts`: whether the job counts in means, ranks and "best"
    - `diverged`: whether the last value of the metric that ranks is not finite; such a job does not count
    - `parameters`: dotted name to value
    - `metrics`: name to number; null where the value that stands for the job is not finite
    - `summary`: name to {last, min, max, step, …}
    - `shared`: other sweeps that want the job
    - `usage`: cpus, memory_bytes, gpu_percent, gpu_memory_bytes, as far as they are known
    - `host`: the machine of its newest attempt; "" while that is not known
    - `signature`: that of its failure; "" for a job that did not fail
    - `steps`: only where values are those of a step: metric to the step of its value, null for one without a step
    """
    return {
        "job": row.job,
        "state": row.state,
        "counts": row.counts,
        "diverged": row.diverged,
        "parameters": row.parameters,
        "metrics": {name: value if is_finite(value) else None for name, value in row.metrics.items()},
        "summary": row.summary,
        "seconds": row.seconds,
        "attempt": row.attempt,
        "reason": row.reason,
        "shared": list(row.shared),
        "usage": row.usage,
        "host": row.host,
        "signature": row.signature,
        **({"steps": row.steps} if row.steps else {}),
    }


def format_results_csv(results: Results) -> Iterator[str]:
    """Yield all rows as CSV (RFC 4180), with these columns:

    - job, state, every parameter, every metric; NAME.step of a metric in `results.marked`;
    - counts, diverged (true or false), seconds, attempt;
    - the usage (cpus, memory_bytes, gpu_percent, gpu_memory_bytes) that any job has;
    - reason; host and signature of a failure, where any job has them.

    Names are those of `monkey.spec.job.column_names`. A parameter that a job lacks is empty.
    """
    metrics, usages, ours = results.metrics, results.usages, list_own_columns(results)
    named = results.columns
    head = ["job", "state", *map(named.parameters.__getitem__, results.parameters)]
    head += map(named.metrics.__getitem__, metrics)
    head += [f"{named.metrics[name]}.step" for name in results.marked]
    head += ["counts", "diverged", "seconds", "attempt", *usages, *ours]
    # Columns are made of all rows of a piece at once, and a parameter's text once for each of its values.
    cells = [_make_parameter_texts(results.table.columns[name]) for name in results.parameters]
    values = [results.values[name] for name in metrics] + [results.steps[name] for name in results.marked]
    ids, seen = results.table.ids, results.seen

    def write(places: Sequence[int]) -> list[Iterable[str]]:
        jobs = [seen[at] for at in places]
        return [
            [ids[at] for at in places],
            [results.states[at] for at in places],
            *([texts(at) for at in places] for texts in cells),
            *([_number(column[at]) for at in places] for column in values),
            ["true" if results.counts[at] else "false" for at in places],
            ["true" if results.diverged[at] else "false" for at in places],
            [_number(job.seconds) for job in jobs],
            [str(job.number) for job in jobs],
            *([_number(job.usage.get(name)) for job in jobs] for name in usages),
            [escape_formula(job.reason) if job.reason else "" for job in jobs],
            *([[escape_formula(job.host) for job in jobs]] if "host" in ours else []),
            *([[results.sign(at) for at in places]] if "signature" in ours else []),
        ]

    order = results.order
    pieces = (zip(*write(order[at : at + LINES]), strict=True) for at in range(0, len(order), LINES))
    return _write_csv(head, pieces)


def list_own_columns(results: Results) -> list[str]:
    """Return the last columns of exported rows: the reason; host and signature where any job has them."""
    failed = any(results.states[at] == "failed" for at in results.order)
    return ["reason", *(["host"] if results.hosts else []), *(["signature"] if failed else [])]


def format_groups_csv(groups: Sequence[ResultGroup], names: Sequence[str], results: Results) -> Iterator[str]:
    """Yield groups as CSV: the parameters `names`, the number of jobs, and the SPREAD of each metric."""
    metrics = results.metrics
    parts = [f".{part}" for part in SPREAD]
    columns = results.name_columns(["jobs"], ["", *parts])
    head = [*map(columns.parameters.__getitem__, names), "jobs"]
    head += [columns.metrics[metric] + part for metric in metrics for part in parts]
    rows = (
        [
            *(_parameter(made.parameters[name]) if name in made.parameters else "" for name in names),
            str(len(made.jobs)),
            *(cell for metric in metrics for cell in _spread(made, metric)),
        ]
        for made in groups
    )
    return _write_csv(head, iter(lambda: list(islice(rows, LINES)), []))


def format_json_rows(rows: Iterable[Any], dump: Callable[[Any], str]) -> Iterator[str]:
    """Yield a JSON array with a line for each row; `dump` makes JSON of a row."""
    lines = map(dump, rows)
    before = "[\n "
    while piece := ",\n ".join(islice(lines, LINES)):
        yield before + piece
        before = ",\n "
    yield "\n]\n" if before[0] == "," else "[]\n"


def escape_formula(text: str) -> str:
    """Return a text in which no spreadsheet finds a formula: an apostrophe stands before it, unless all is a number."""
    if not _FORMULA.search(text):
        return text
    try:
        float(text)
    except ValueError:
        return _FORMULA.sub(r"\g<0>'", text)
    return text


def _write_csv(head: Iterable[str], pieces: Iterable[Iterable[Iterable[str]]]) -> Iterator[str]:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([escape_formula(name) for name in head])
    for rows in pieces:
        writer.writerows(rows)
        yield _encodable(out.getvalue())
        out.seek(0)
        out.truncate()
    if out.tell():
        yield _encodable(out.getvalue())


def _encodable(text: str) -> str:
    # A lone half of a surrogate pair is text in JSON and YAML, but in no encoding.
    return text.encode("utf-8", "replace").decode()


def _make_parameter_texts(column: ParameterColumn) -> Callable[[int], str]:
    """Return what says a parameter of the job at a place."""
    texts = ["", *map(_parameter, column.values)]
    return lambda at: texts[column.index[at] - ABSENT]


def _parameter(value: ParameterValue) -> str:
    # Numbers are ours to write; a text is whatever a spec says.
    return escape_formula(value) if isinstance(value, str) else format_argument(value)


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)


def _spread(made: ResultGroup, metric: str) -> list[str]:
    of = made.metrics.get(metric)
    if of is None:
        return [*("" for _ in SPREAD[:-1]), "0"]
    return [*map(_number, (of.mean, of.std, of.ci95, of.min, of.max)), str(of.n)]
