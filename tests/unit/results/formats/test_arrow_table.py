"""Arrow and Parquet: types stay, and NaN, "not logged" and null are not the same."""

from __future__ import annotations

import io
import sys
from math import isnan, nan
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import MonkeyError
from monkey.results.export import format_results_csv
from monkey.results.formats.arrow_table import encode_parquet, make_arrow_table
from monkey.results.result_rows import Results
from tests.unit.results.sample_results import JOBS, Job, accs, made, metric, read


def read_back(results: Results) -> Any:
    import pyarrow.parquet

    return pyarrow.parquet.read_table(io.BytesIO(encode_parquet(results)))


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, -(1 << 63)], "int64"),
        ([1, 1 << 63], "string"),
        ([1, 0.5], "double"),
        ([True, False], "bool"),
        (["a", "é\n"], "string"),
        (["a", 1], "string"),
        ([[1, "a"], {"b": None}], "string"),
        ([1, True], "string"),
        ([None, 3], "int64"),
        ([(1 << 60) + 1, 0.5], "string"),
    ],
)
def test_parameters_keep_their_type(values: list[Any], kind: str) -> None:
    table = read_back(made([{"p": value} for value in values], accs(*range(len(values), 0, -1))))
    back = table["p"].to_pylist()
    if kind == "string" and not all(isinstance(value, str) for value in values):
        import json

        back = [json.loads(text) for text in back]
    assert back == values and list(map(type, back)) == (
        [float] * len(values) if kind == "double" else list(map(type, values))
    )
    assert str(table.schema.field("p").type) == kind or kind == "double"


@pytest.mark.needs("pyarrow")
def test_nan_null_and_absent_are_told_apart() -> None:
    jobs = [{"x": 1}, {"x": None}, {"y": 2}, {"x": 3}]
    results = made(jobs, [*accs(0.5, None), Job(metrics={"acc": metric(None, nonfinite=1)}), *accs(0.25)])
    table = read_back(results)
    rows = {row["job"]: row for row in table.to_pylist()}
    acc = [rows[job]["acc"] for job in results.table.ids]
    assert acc[:2] == [0.5, None] and isnan(acc[2]) and acc[3] == 0.25
    assert [rows[job]["x"] for job in results.table.ids] == [1, None, None, 3]
    assert str(table.schema.field("acc").type) == "double" and str(table.schema.field("x").type) == "int64"
    assert [rows[job]["diverged"] for job in results.table.ids] == [False, False, True, False]


@pytest.mark.needs("pyarrow")
def test_whole_numbers_of_a_metric_stay_whole() -> None:
    seen = [Job(metrics={"acc": metric(0.5), "steps": {"last": (1 << 60) + at}}) for at in range(4)]
    table = read_back(made(JOBS, seen))
    assert sorted(table["steps"].to_pylist()) == [(1 << 60) + at for at in range(4)]


@pytest.mark.needs("pyarrow")
def test_the_columns_are_those_of_the_csv() -> None:
    seen = [*accs(0.5, 0.25), Job("failed", reason="exit code 1\ud800", host="gpu3", usage={"cpus": 1.5}), Job()]
    jobs = [{"acc": 1, "metric.acc": 2, "lr": lr} for lr in range(4)]
    results = made(jobs, seen)
    table = read_back(results)
    csv = read(format_results_csv(results))
    assert table.num_rows == 4 and [row["job"] for row in csv] == table["job"].to_pylist()
    ours = table.column_names
    assert ours[:2] == ["job", "state"] and ours[-3:] == ["reason", "host", "signature"] == list(csv[0])[-3:]
    assert "metric.metric.acc" in ours, "a name that a parameter has is not taken twice"
    assert table["host"].to_pylist().count("gpu3") == 1 and table["cpus"].to_pylist().count(1.5) == 1
    assert table["signature"].to_pylist()[-1] == results.sign(2)


@pytest.mark.needs("pyarrow")
def test_no_rows_make_a_table_too() -> None:
    assert read_back(made(JOBS, accs(1, 2, 3, 4)).choose([])).num_rows == 0


@pytest.mark.needs("pyarrow")
@pytest.mark.needs("pandas")
def test_pandas_reads_the_file(tmp_path: Path) -> None:
    import pandas

    path = tmp_path / "r.parquet"
    path.write_bytes(encode_parquet(made([{"x": "a"}, {"x": "b"}, {"y": 1}], accs(0.5, nan, None))))
    frame = pandas.read_parquet(path)
    assert list(frame["x"][:1]) == ["a"] and frame["acc"].dtype == "float64" and len(frame) == 3


def test_without_pyarrow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MonkeyError) as raised:
        make_arrow_table(made(JOBS, accs(1, 2, 3, 4)))
    assert "pyarrow" in raised.value.message and "parquet" in (raised.value.hint or "")
