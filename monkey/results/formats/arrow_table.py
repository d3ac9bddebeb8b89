"""Results as an Arrow table, column by column, each with its type; and that table as a Parquet file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from monkey.errors import MonkeyError
from monkey.origin import hint_install
from monkey.results.export import list_own_columns
from monkey.results.result_rows import MetricColumn, Results
from monkey.spec.job.job_table import ABSENT, ParameterColumn, ParameterValue

if TYPE_CHECKING:
    import pyarrow

#: Whole numbers that Arrow's int64 holds.
_MOST = 1 << 63


def make_arrow_table(results: Results) -> pyarrow.Table:
    """Return the chosen rows, best first, with the columns of `results --csv`. Raises MonkeyError without pyarrow.

    - Parameters keep their type: bool, int64, double or string. Values of several types are JSON, as string.
    - A parameter that a job lacks, or whose value is null, is null.
    - A metric is null where the job did not log it, and NaN where no finite value stands for the job.
    """
    pa = _import_pyarrow()
    order, seen = results.order, [results.seen[at] for at in results.order]
    columns: dict[str, Any] = {"job": pa.array([results.table.ids[at] for at in order], pa.string())}
    columns["state"] = _encode_words([results.states[at] for at in order])
    for name in results.parameters:
        columns[results.columns.parameters[name]] = _make_parameter(results.table.columns[name], order)
    for name in results.metrics:
        columns[results.columns.metrics[name]] = _make_metric(results.values[name], order)
    for name in results.marked:
        steps = [results.steps[name][at] for at in order]
        columns[f"{results.columns.metrics[name]}.step"] = pa.array(steps, pa.int64())
    columns["counts"] = pa.array([results.counts[at] for at in order], pa.bool_())
    columns["diverged"] = pa.array([results.diverged[at] for at in order], pa.bool_())
    columns["seconds"] = pa.array([job.seconds for job in seen], pa.float64())
    columns["attempt"] = pa.array([job.number for job in seen], pa.int64())
    for name in results.usages:
        columns[name] = pa.array([job.usage.get(name) for job in seen], pa.float64())
    ours: Mapping[str, Sequence[str | None]] = {
        "reason": [_make_encodable(job.reason) for job in seen],
        "host": [job.host or None for job in seen],
        "signature": [results.sign(at) or None for at in order],
    }
    columns |= {name: _encode_words(ours[name]) for name in list_own_columns(results)}
    return pa.table(columns, metadata={"monkey.metric": results.metric or "", "monkey.rows": "best first"})


def encode_parquet(results: Results) -> bytes:
    """Return the table as a Parquet file. Raises MonkeyError without pyarrow."""
    table = make_arrow_table(results)
    import pyarrow.parquet

    out = BytesIO()
    pyarrow.parquet.write_table(table, out)
    return out.getvalue()


def _import_pyarrow() -> Any:
    try:
        import pyarrow
    except ModuleNotFoundError as exc:
        if exc.name != "pyarrow":
            raise
        raise MonkeyError(
            "Arrow and Parquet need pyarrow, which is not installed here", hint=hint_install("parquet")
        ) from exc
    return pyarrow


def _encode_words(words: Sequence[str | None]) -> Any:
    """Return texts of which most are the same."""
    return _import_pyarrow().array(words, "string").dictionary_encode()


def _make_parameter(column: ParameterColumn, order: Sequence[int]) -> Any:
    pa = _import_pyarrow()
    kinds = {type(value) for value in column.values if value is not None}
    values: list[Any] = list(column.values)
    if kinds == {bool}:
        of = pa.bool_()
    elif kinds == {int} and all(value is None or -_MOST <= value < _MOST for value in values):
        of = pa.int64()
    elif (
        kinds
        and kinds <= {int, float}
        and all(value is None or abs(value) <= 2**53 or type(value) is float for value in values)
    ):
        of, values = pa.float64(), [None if value is None else float(value) for value in values]
    else:
        of, values = pa.string(), list(map(_spell, values) if kinds != {str} else map(_make_encodable, values))
    at_values = [None if (each := column.index[at]) == ABSENT else each for at in order]
    return pa.array(values, of).take(pa.array(at_values, pa.int32()))


def _make_metric(column: MetricColumn, order: Sequence[int]) -> Any:
    pa, values = _import_pyarrow(), [column[at] for at in order]
    whole = all(value is None or (type(value) is int and -_MOST <= value < _MOST) for value in values)
    return (
        pa.array(values, pa.int64())
        if whole
        else pa.array([v if v is None else float(v) for v in values], pa.float64())
    )


def _spell(value: ParameterValue) -> str | None:
    return None if value is None else _make_encodable(json.dumps(value, ensure_ascii=False, sort_keys=True))


def _make_encodable(text: Any) -> str | None:
    # A lone half of a surrogate pair is text in JSON and YAML, but in no encoding.
    return None if text is None else str(text).encode("utf-8", "replace").decode()
