from __future__ import annotations

import csv
import io
import json
import statistics
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.errors import MonkeyError
from monkey.results.export import escape_formula, format_groups_csv, format_results_csv, serialize_row
from monkey.results.groups import group_results, serialize_group, summarize_values
from monkey.results.result_rows import MetricPick, Results, explain_unmeasured, filter_results, gather_results
from monkey.results.result_table import tabulate_groups, tabulate_results
from monkey.spec.job.recipe import SweepSettings
from tests.unit.plan.making import grid, table


@dataclass(frozen=True)
class Job:
    state: str = "succeeded"
    attempt: int = 1
    reason: str | None = None
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: float | None = 2.5
    shared: tuple[str, ...] = ()
    usage: dict[str, float] = field(default_factory=dict)
    goal: bool = False


def metric(last: float | None, best: float | None = None, nonfinite: int = 0) -> dict[str, Any]:
    bound = last if best is None else best
    return {"last": last, "min": bound, "max": bound, "step": 9, "count": 1, "nonfinite": nonfinite}


def made(jobs: list[dict[str, Any]], seen: list[Job], pick: MetricPick = MetricPick.LAST, **settings: Any) -> Results:
    rows = table(jobs)
    options = {"metric": "acc", "maximize": True, **settings}
    return gather_results(rows, SweepSettings(**options), dict(zip(rows.ids, seen, strict=True)), pick)


def accs(*values: float | None, **more: Any) -> list[Job]:
    return [Job(metrics={"acc": metric(value, **more)} if value is not None else {}) for value in values]


JOBS = grid(lr=[0.1, 0.2], epochs=[5], seed=range(2))


def ranked(results: Results) -> list[float | None]:
    return [row.metrics.get("acc") for row in results.rows]


def test_rows_are_ranked_by_the_goal_and_those_without_a_value_come_last() -> None:
    seen = [*accs(0.5, None, 0.9), Job(metrics={"acc": metric(None, nonfinite=3)})]
    best_first = made(JOBS, seen)
    assert ranked(best_first)[:2] == [0.9, 0.5] and ranked(best_first)[2] is None and isnan(ranked(best_first)[3])
    assert ranked(made(JOBS, seen, maximize=False))[:2] == [0.5, 0.9]


def test_without_a_metric_rows_keep_the_specs_order() -> None:
    assert ranked(made(JOBS, accs(0.1, 0.3, 0.2, 0.4), metric=None)) == [0.1, 0.3, 0.2, 0.4]


def test_the_last_value_counts_unless_the_best_is_asked_for() -> None:
    seen = [Job(metrics={"acc": metric(0.5, best=0.99)}), *accs(0.7, 0.6, 0.5)]
    assert ranked(made(JOBS, seen))[0] == 0.7
    assert ranked(made(JOBS, seen, MetricPick.BEST))[0] == 0.99


def test_whole_numbers_stay_exact_to_the_last_digit_of_every_form() -> None:
    large, huge = 2**53 + 1, 10**400
    results = made(JOBS, accs(large, 0.1 + 0.2, huge, None))
    assert ranked(results)[:3] == [huge, large, 0.1 + 0.2]
    assert ranked(made(JOBS, accs(large, huge, None, None), maximize=False))[:2] == [large, huge]
    assert [json.loads(json.dumps(serialize_row(row)))["metrics"]["acc"] for row in results.rows[:2]] == [huge, large]
    shown = [row["acc"] for row in read(format_results_csv(results))]
    assert shown == [str(huge), str(large), "0.30000000000000004", ""]
    printed = tabulate_results(results)
    assert [row[printed.names.index("acc")] for row in printed.rows[:2]] == ["1.0000e+400", "9.0072e+15"]
    assert [of.metrics["acc"].n for of in group_results(results, ["lr"]) if "acc" in of.metrics] == [2]


def test_where_chooses_by_parameters_metrics_and_state() -> None:
    results = made(JOBS, [*accs(0.5, 0.6, 0.7), Job(state="failed")])
    assert len(filter_results(results, "lr == 0.2").rows) == 2
    assert len(filter_results(results, "acc > 0.55 and lr < 0.2").rows) == 1
    assert [row.state for row in filter_results(results, "state == 'failed'").rows] == ["failed"]


@pytest.mark.parametrize("condition", ["lrr == 1", "lr ==", "__import__('os')", "state < 3", ""])
def test_a_wrong_where_says_what_is_wrong(condition: str) -> None:
    with pytest.raises(MonkeyError) as raised:
        filter_results(made(JOBS, accs(1, 2, 3, 4)), condition)
    assert condition in raised.value.message


def test_groups_have_mean_and_sample_deviation() -> None:
    groups = group_results(made(JOBS, accs(0.5, 0.7, 0.9, 0.8)), ["lr"])
    assert [made.parameters for made in groups] == [{"lr": 0.2}, {"lr": 0.1}]
    best = groups[0].metrics["acc"]
    assert (best.mean, best.std, best.min, best.max, best.n) == pytest.approx((0.85, 0.0707107, 0.8, 0.9, 2))


def test_a_group_tells_jobs_without_a_value() -> None:
    groups = group_results(
        made(JOBS, [*accs(0.5, None, 0.9), Job(state="failed", metrics={"acc": metric(None)})]), ["lr"]
    )
    assert [made.metrics["acc"].n for made in groups] == [1, 1] and groups[0].metrics["acc"].std is None
    assert groups[0].states == {"succeeded": 1, "failed": 1}
    assert tabulate_groups(groups, ["lr"], made(JOBS, accs(1, 1, 1, 1))).rows[0][-1] == "1 of 2"


def test_groups_by_several_and_by_absent_parameters() -> None:
    jobs = [{"lr": 1}, {"lr": 1.0}, {"lr": 1, "wd": 2}, {"lr": 1, "wd": 3}]
    assert len(group_results(made(jobs, accs(1, 2, 3, 4)), ["lr", "wd"])) == 4
    assert [made.parameters for made in group_results(made(jobs, accs(4, 3, 2, 1)), ["wd"])] == [
        {},
        {"wd": 2},
        {"wd": 3},
    ]


def test_an_unknown_group_names_the_nearest() -> None:
    with pytest.raises(MonkeyError) as raised:
        group_results(made(JOBS, accs(1, 2, 3, 4)), ["lrr"])
    assert "'lrr'" in raised.value.message and "'lr'" in (raised.value.hint or "")


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_spread_is_what_the_statistics_module_says(values: list[float]) -> None:
    found = summarize_values(values)
    size = max(map(abs, values))
    assert found.mean == pytest.approx(statistics.fmean(values), abs=1e-9 * size)
    assert found.std == pytest.approx(statistics.stdev(values), abs=1e-9 * size)


def test_the_largest_floats_have_a_spread() -> None:
    assert summarize_values([1.7e308, 1.7e308]).mean == pytest.approx(1.7e308)
    assert summarize_values([0.0]).mean == 0.0


def test_a_metric_that_no_job_logged_is_said_with_those_that_were() -> None:
    assert not explain_unmeasured(made(JOBS, accs(0.5, None, None, None), metric="acc"))
    assert not explain_unmeasured(made(JOBS, [Job(state="running")] * 4, metric="loss")), "it may come yet"
    missing = explain_unmeasured(made(JOBS, accs(0.5, 0.5, 0.5, 0.5), metric="loss"))
    assert missing == "no job logged the metric 'loss'; logged were: acc"
    assert explain_unmeasured(made(JOBS, [Job()] * 4, metric="loss")) == "no job logged the metric 'loss', or any other"


def test_the_table_shows_what_varies() -> None:
    shown = tabulate_results(made(JOBS, accs(0.5, 0.25, 0.125, 0.123456789)))
    assert shown.names == ("lr", "seed", "acc", "state", "time", "job")
    assert shown.rows[0][:5] == ("0.1", "0", "0.5", "succeeded", "2.5s")
    assert shown.rows[3][2] == "0.12346"
    assert shown.left_out == "1 parameter that does not vary (--all shows them)"
    assert tabulate_results(made(JOBS, accs(1, 2, 3, 4)), everything=True).names[1] == "epochs"


def test_the_table_of_all_tells_why_jobs_failed() -> None:
    results = made(JOBS, [Job(state="failed", reason="exit 1", metrics={}), *accs(1, 2, 3)])
    shown = tabulate_results(results, everything=True)
    assert shown.names[-1] == "reason" and shown.rows[-1][-1] == "exit 1"
    assert len(shown.right) == len(shown.names)


def test_what_jobs_used_is_in_the_table_of_all_and_in_conditions() -> None:
    used = {"cpus": 1.5, "memory_bytes": 3_210_000_000, "gpu_percent": 87.0}
    results = made(JOBS, [Job(metrics={"acc": metric(4.0)}, usage=used), *accs(1, 2, 3)])
    shown = tabulate_results(results, everything=True)
    assert shown.names[-4:] == ("CPUs", "peak GB", "GPU %", "job") and len(shown.right) == len(shown.names)
    assert shown.rows[0][-4:-1] == ("1.5", "3.21", "87") and shown.rows[1][-4:-1] == ("", "", "")
    assert "CPUs" not in tabulate_results(results).names
    assert [row.usage for row in filter_results(results, "memory_bytes > 3e9").rows] == [used]
    assert serialize_row(results.rows[0])["usage"] == used and serialize_row(results.rows[1])["usage"] == {}
    head, first, *_ = format_results_csv(results).splitlines()
    assert dict(zip(head.split(","), first.split(","), strict=True))["memory_bytes"] == "3210000000"


def test_many_metrics_are_cut_and_the_ranking_one_is_first() -> None:
    many = {f"m{i}": metric(1.0) for i in range(9)} | {"acc": metric(0.5)}
    results = made(JOBS, [Job(metrics=many)] * 4)
    assert tabulate_results(results).names[2:6] == ("acc", "m0", "m1", "m2")
    assert "6 metrics" in tabulate_results(results).left_out
    assert len(results.metrics) == 10


def test_a_run_that_diverged_on_the_way_says_so() -> None:
    seen = [
        Job(metrics={"acc": metric(0.5, nonfinite=1)}),
        Job(metrics={"acc": metric(None, nonfinite=1)}),
        *accs(1, 2),
    ]
    assert [row[2] for row in tabulate_results(made(JOBS, seen)).rows] == ["2", "1", "0.5 (nan)", "nan"]


@pytest.mark.parametrize(
    ("values", "text"),
    [((0.9512, 0.9534), "0.9523 ± 0.0016"), ((1, 1), "1 ± 0"), ((100, 300), "200 ± 1.4e+02"), ((1e-12, 3e-12), None)],
)
def test_means_are_shown_as_precisely_as_they_are_known(values: tuple[float, float], text: str | None) -> None:
    results = made(grid(lr=[1], seed=range(2)), accs(*values))
    shown = tabulate_groups(group_results(results, ["lr"]), ["lr"], results).rows[0][1]
    assert shown == (text or "2e-12 ± 1.4e-12")


def test_json_rows() -> None:
    results = made(JOBS, [Job(metrics={"acc": metric(None, nonfinite=1)}, shared=("b",)), *accs(1, 2, 3)])
    rows = json.loads(json.dumps([serialize_row(row) for row in results.rows], allow_nan=False))
    assert rows[0]["parameters"] == {"lr": 0.2, "epochs": 5, "seed": 1} and rows[0]["metrics"] == {"acc": 3.0}
    assert (rows[3]["metrics"], rows[3]["shared"]) == ({"acc": None}, ["b"])
    assert rows[0]["summary"]["acc"]["step"] == 9 and rows[0]["state"] == "succeeded" and len(rows[0]["job"]) == 16


def test_json_groups() -> None:
    shown = serialize_group(group_results(made(JOBS, accs(1, 3, 5, 7)), ["lr"])[0])
    assert shown["parameters"] == {"lr": 0.2} and len(shown["jobs"]) == 2 and shown["metrics"]["acc"]["mean"] == 6


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_has_everything() -> None:
    text = format_results_csv(made(JOBS, [*accs(0.5, 0.25, None), Job(reason="exit 1", state="failed", seconds=None)]))
    assert text.count("\r\n") == 5
    rows = read(text)
    assert list(rows[0]) == ["job", "state", "lr", "epochs", "seed", "acc", "counts", "seconds", "attempt", "reason"]
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


@pytest.mark.parametrize("text", ["-1.5", "+3", "-inf", "a=b", "", "1-2"])
def test_numbers_and_harmless_texts_stay_as_they_are(text: str) -> None:
    assert escape_formula(text) == text


def test_csv_of_text_that_no_encoding_has() -> None:
    assert "\n" in format_results_csv(made([{"x": 1}], [Job(reason="\ud800")])).encode().decode()


def test_csv_of_groups() -> None:
    results = made(JOBS, accs(1, 3, 5, None))
    rows = read(format_groups_csv(group_results(results, ["lr"]), ["lr"], results.metrics))
    one = {"lr": "0.1", "jobs": "2"}
    assert rows == [
        {"lr": "0.2", "jobs": "2", "acc.mean": "5.0", "acc.std": "", "acc.min": "5", "acc.max": "5", "acc.n": "1"},
        {**one, "acc.mean": "2.0", "acc.std": "1.4142135623730951", "acc.min": "1", "acc.max": "3", "acc.n": "2"},
    ]


def test_a_metric_that_nobody_logged_ranks_nothing() -> None:
    seen = [Job(metrics={"loss": metric(value)}) for value in (3.0, 1.0, 4.0, 2.0)]
    results = made(JOBS, seen)
    assert results.metrics == ("loss",) and [row.metrics["loss"] for row in results.rows] == [3.0, 1.0, 4.0, 2.0]
    assert tabulate_results(results).names == ("lr", "seed", "loss", "state", "time", "job")


def test_groups_without_a_metric_keep_the_specs_order_and_count_nothing() -> None:
    results = made(JOBS, [Job()] * 4, metric=None)
    groups = group_results(results, ["lr"])
    assert [made.parameters["lr"] for made in groups] == [0.1, 0.2]
    shown = tabulate_groups(groups, ["lr"], results)
    assert (shown.names, shown.rows) == (("lr", "n"), (("0.1", "0 of 2"), ("0.2", "0 of 2")))


def test_columns_of_numbers_stand_right() -> None:
    jobs = [{"lr": 0.1, "opt": "a"}, {"lr": 2, "opt": "b"}, {"opt": "c"}]
    shown = tabulate_results(made(jobs, accs(1, 2, 3)), everything=True)
    assert dict(zip(shown.names, shown.right, strict=True)) == {
        "lr": True, "opt": False, "acc": True, "state": False, "time": True, "job": False,
    }  # fmt: skip
    assert [row[0] for row in shown.rows] == ["", "2", "0.1"]
