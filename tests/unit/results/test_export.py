from __future__ import annotations

import csv
import io
import json
from math import nan

import pytest

from monkey.results.export import escape_formula, format_groups_csv, format_results_csv, serialize_row
from monkey.results.formats.arrow_table import make_arrow_table
from monkey.results.groups import group_results, serialize_group
from tests.unit.results.sample_results import JOBS, Job, accs, made, metric, read


def test_json_rows() -> None:
    results = made(JOBS, [Job(metrics={"acc": metric(None, nonfinite=1)}, shared=("b",)), *accs(1, 2, 3)])
    rows = json.loads(json.dumps([serialize_row(row) for row in results.rows], allow_nan=False))
    assert rows[0]["parameters"] == {"lr": 0.2, "epochs": 5, "seed": 1} and rows[0]["metrics"] == {"acc": 3.0}
    assert (rows[3]["metrics"], rows[3]["shared"]) == ({"acc": None}, ["b"])
    assert rows[0]["summary"]["acc"]["step"] == 9 and rows[0]["state"] == "succeeded" and len(rows[0]["job"]) == 16


def test_json_groups() -> None:
    shown = serialize_group(group_results(made(JOBS, accs(1, 3, 5, 7)), ["lr"])[0])
    assert shown["parameters"] == {"lr": 0.2} and len(shown["jobs"]) == 2 and shown["states"] == {"succeeded": 2}
    spread = {"mean": 6, "std": 2**0.5, "ci95": 12.706204736174696, "min": 5, "max": 7, "n": 2}
    assert list(shown) == ["parameters", "jobs", "states", "metrics", "mixed"]
    assert list(shown["metrics"]["acc"]) == list(spread)
    assert shown["metrics"]["acc"] == pytest.approx(spread)


def test_csv_has_everything() -> None:
    text = "".join(
        format_results_csv(made(JOBS, [*accs(0.5, 0.25, None), Job(reason="exit 1", state="failed", seconds=None)]))
    )
    assert text.count("\r\n") == 5
    rows = read(text)
    assert list(rows[0]) == [
        "job",
        "state",
        "lr",
        "epochs",
        "seed",
        "acc",
        "counts",
        "diverged",
        "seconds",
        "attempt",
        "reason",
        "signature",
    ]
    assert [row["acc"] for row in rows] == ["0.5", "0.25", "", ""]
    assert rows[3]["reason"] == "exit 1" and rows[3]["seconds"] == "" and rows[0]["seconds"] == "2.5"


def test_csv_of_odd_values() -> None:
    jobs = [{"x": None}, {"x": True}, {"x": [1, "a"]}, {"y": 'a,"b"\n'}]
    rows = read(format_results_csv(made(jobs, accs(4, 3, 2, nan))))
    assert [(row["x"], row["y"]) for row in rows] == [("null", ""), ("true", ""), ('[1,"a"]', ""), ("", 'a,"b"\n')]
    assert rows[3]["acc"] == "nan"


def test_csv_keeps_metrics_apart_from_parameters_of_their_name() -> None:
    rows = read(format_results_csv(made([{"acc": 1}, {"acc": 2}], accs(0.5, 0.25))))
    assert rows[0]["acc"] == "1" and rows[0]["metric.acc"] == "0.5"


@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1", "\r=1", "＝1"])
def test_no_cell_is_a_formula(text: str) -> None:
    results = made([{"x": text}, {"x": "a"}], [Job(reason=text, metrics={text: metric(1)}), Job()])
    rows = read(format_results_csv(results))
    assert rows[0]["x"] == f"'{text}" and rows[0]["reason"] == f"'{text}" and f"'{text}" in rows[0]


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("x;=cmd()", "x;'=cmd()"),
        ("x\t=cmd()", "x\t'=cmd()"),
        ('x;"=cmd()', "x;\"'=cmd()"),
        ("x\r\n@SUM(A1)", "x\r\n'@SUM(A1)"),
        ("=1;=2", "'=1;'=2"),
    ],
)
def test_no_cell_is_a_formula_behind_another_separator(text: str, safe: str) -> None:
    results = made([{text: text}, {text: "a"}], [Job(metrics={f"m{text}": metric(1)}), Job()])
    [head, row, *_] = csv.reader(io.StringIO("".join(format_results_csv(results)), newline=""))
    assert safe in head and safe in row and f"m{text}" not in head


@pytest.mark.parametrize("text", ["-1.5", "+3", "-inf", "a=b", "", "1-2"])
def test_numbers_and_harmless_texts_stay_as_they_are(text: str) -> None:
    assert escape_formula(text) == text


def test_csv_of_text_that_no_encoding_has() -> None:
    assert "\n" in "".join(format_results_csv(made([{"x": 1}], [Job(reason="\ud800")]))).encode().decode()


def test_csv_of_groups() -> None:
    results = made(JOBS, accs(1, 3, 5, None))
    rows = read(format_groups_csv(group_results(results, ["lr"]), ["lr"], results))
    one = {"lr": "0.1", "jobs": "2"}
    assert rows == [
        {
            "lr": "0.2",
            "jobs": "2",
            "acc.mean": "5.0",
            "acc.std": "",
            "acc.ci95": "",
            "acc.min": "5",
            "acc.max": "5",
            "acc.n": "1",
        },
        {
            **one,
            "acc.mean": "2.0",
            "acc.std": "1.4142135623730951",
            "acc.ci95": "12.706204736174696",
            "acc.min": "1",
            "acc.max": "3",
            "acc.n": "2",
        },
    ]


#: Texts that spreadsheets would take for formulas; all but the last are ordinary parameters.
FORMULAS = ["--no-aug", "+experiment=base", "@config.yaml", "-x", "=1+2"]


@pytest.mark.needs("pyarrow")
@pytest.mark.needs("pandas")
def test_programs_find_texts_as_they_are_in_all_but_csv() -> None:
    import pandas

    texts = [*FORMULAS, "plain", "-1.5", "a-b"]
    results = made([{"flag": text} for text in texts], accs(*range(len(texts), 0, -1)))
    guarded = [f"'{text}" if text in FORMULAS else text for text in texts]
    text = "".join(format_results_csv(results))
    assert [row["flag"] for row in csv.DictReader(io.StringIO(text, newline=""))] == guarded
    assert pandas.read_csv(io.StringIO(text, newline=""))["flag"].tolist() == guarded
    assert [json.loads(json.dumps(serialize_row(row)))["parameters"]["flag"] for row in results.rows] == texts
    assert make_arrow_table(results).to_pandas()["flag"].tolist() == texts
