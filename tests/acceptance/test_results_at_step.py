"""One row, one moment: with the best value of a metric, a row has what the other metrics were at its step."""

from __future__ import annotations

import io
import re
from math import inf, isfinite, isnan, nan
from pathlib import Path
from typing import Any

import pytest

import monkey
from tests.acceptance import curve_records
from tests.acceptance.curve_records import make_records
from tests.acceptance.shop import Shop

pytestmark = [pytest.mark.needs("pandas"), pytest.mark.needs("pyarrow")]

#: Logs what `make_records` says, as the test reads it from here, too.
JOB = """\
import monkey
from curve_records import make_records

parameters = monkey.params()
for name, value, step in make_records(parameters["half"] * 8 + parameters["i"]):
    monkey.log(name, value, step=step)
"""
SPEC = """\
command: python3 log.py
parameters: {half: [0, 1], i: {range: [0, 8]}}
metric: {name: acc, goal: maximize, take: TAKE}
outputs: []
"""
OTHERS = ("loss", "late", "total", "test")
Values = dict[str, tuple[float, int | None]]


def find_value(records: Any, name: str, step: int | None) -> tuple[float, int | None] | None:
    """Return, by pandas, the value of a metric at a step or the last one before, and its step."""
    import pandas

    rows = records[records["name"] == name]
    stepped = rows.dropna(subset=["step"]).drop_duplicates("step", keep="last").sort_values("step")
    if rows.empty:
        return None
    if step is None or stepped.empty:
        return rows["value"].iloc[-1], None
    right = stepped[["step", "value"]].assign(of=stepped["step"]).astype({"step": "int64"})
    met = pandas.merge_asof(pandas.DataFrame({"step": [step]}), right, on="step").iloc[0]
    return None if isnan(met["of"]) else (met["value"], int(met["of"]))


def expect(job: int, step: int | None) -> Values:
    """Return what a row must have: metric to its value and the step of that; `step`: None for that of the best acc."""
    import pandas

    records = pandas.DataFrame(make_records(job), columns=["name", "value", "step"])
    found: dict[str, tuple[float, int | None] | None] = {}
    if step is None:
        acc = records[(records["name"] == "acc") & records["value"].map(isfinite)]
        if not acc.empty:
            best = acc.loc[acc["value"].idxmax()]
            step = None if isnan(best["step"]) else int(best["step"])
            found["acc"] = best["value"], step
    else:
        found["acc"] = find_value(records, "acc", step)
    found |= {name: find_value(records, name, step) for name in OTHERS}
    return {name: value for name, value in found.items() if value is not None}


def is_same(found: Any, value: float) -> bool:
    return found is None or isnan(found) if not isfinite(value) else found == value


def check_rows(frame: Any, step: int | None) -> None:
    """Check rows of `--csv` or `--parquet`: values, and the steps of those that are of another one."""
    assert len(frame) == 16
    for _, row in frame.iterrows():
        want = expect(int(row["half"]) * 8 + int(row["i"]), step)
        for name in ("acc", *OTHERS):
            if name in want:
                value, of = want[name]
                assert is_same(row[name], value), (name, row)
                own = row.get(f"{name}.step", row["acc.step"] if step is None else step)
                assert (of is None and isnan(own)) or own == of, (name, of, row)
            else:
                assert isnan(row.get(name, nan)), (name, row)


@pytest.mark.parametrize(
    ("take", "options", "step"),
    [("best", [], None), ("last", ["--at-best"], None), ("last", ["--best"], None), ("best", ["--step", "6"], 6)],
)
def test_each_value_is_of_the_row_s_step(shop: Shop, take: str, options: list[str], step: int | None) -> None:
    import pandas

    (shop.root / "log.py").write_text(JOB)
    (shop.root / "curve_records.py").write_text(Path(curve_records.__file__).read_text())
    shop.spec(SPEC.replace("TAKE", take))
    shop.run("apply")
    rows = shop.json("results", *options)
    assert len(rows) == 16
    marked = 0
    for row in rows:
        want = expect(row["parameters"]["half"] * 8 + row["parameters"]["i"], step)
        records = make_records(row["parameters"]["half"] * 8 + row["parameters"]["i"])
        diverged = [value for name, value, _ in records if name == "acc"][-1:]
        assert row["diverged"] == any(not isfinite(value) for value in diverged)
        assert row["metrics"].keys() - {"acc"} == want.keys() - {"acc"}, row
        for name, (value, of) in want.items():
            assert is_same(row["metrics"][name], value), (name, row)
            assert row["steps"][name] == of, (name, row)
            marked += of != want.get("acc", (0, None))[1]
    assert marked > 10, "the curves are too tame"
    ranked = [value for row in rows if row["counts"] and (value := row["metrics"].get("acc")) is not None]
    assert ranked == sorted(ranked, reverse=True) and len(ranked) > 5

    frame = pandas.read_csv(io.StringIO(shop.run("results", "--csv", *options).stdout))
    check_rows(frame, step)
    shop.run("results", "-o", "r.parquet", *options)
    check_rows(pandas.read_parquet(shop.root / "r.parquet"), step)

    handle = monkey.Project(shop.root).sweep("sweep")
    check_rows(handle.results(best=step is None, step=step).to_pandas(), step)

    finite = frame[frame["counts"]].replace([inf, -inf], nan)
    for group in shop.json("results", "--group-by", "half", *options):
        mine = finite[finite["half"] == group["parameters"]["half"]]
        for name in {"acc", *OTHERS}.intersection(frame):
            column = mine[name].dropna()
            assert name not in group["metrics"] if column.empty else True
            if not column.empty:
                spread = group["metrics"][name]
                assert (spread["mean"], spread["n"]) == (pytest.approx(column.mean()), len(column))

    for text in (shop.run("results", "--all", *options).stdout, shop.run("results", "--markdown", *options).stdout):
        check_text(text, rows, step)
    chosen = shop.json("results", "--where", "loss < 0.5", *options)
    assert {row["job"] for row in chosen} == {row["job"] for row in rows if (row["metrics"].get("loss") or 1) < 0.5}


def check_text(text: str, rows: list[dict[str, Any]], step: int | None) -> None:
    """Check that each value of a table is marked where it is of another step, and only there."""
    lines = {
        row["job"]: line for row in rows for line in text.splitlines() if row["job"] in line and "Best" not in line
    }
    assert len(lines) >= 10
    for row in rows:
        cells = {cell.strip(" `|") for cell in re.split(r"  +|\|", lines.get(row["job"], ""))}
        for name, value in row["metrics"].items():
            of, own = row["steps"][name], row["steps"].get("acc") if step is None else step
            if value is not None and cells != {""} and (name != "acc" or step is not None):
                mark = "" if of == own is not None else " (last)" if of is None else f" (step {of})"
                spoiled = " (nan)" if row["summary"][name]["nonfinite"] else ""
                assert f"{value:.5g}{spoiled}{mark}" in cells, (name, value, of, own, cells)
