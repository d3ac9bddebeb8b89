from __future__ import annotations

import json

import pytest

from monkey.results.export import format_results_csv, serialize_row
from monkey.results.groups import group_results
from monkey.results.result_filter import filter_results
from monkey.results.result_table import tabulate_groups, tabulate_results
from tests.unit.plan.making import grid
from tests.unit.results.sample_results import JOBS, Job, accs, made, metric, ranked, read


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


def test_a_group_tells_jobs_without_a_value() -> None:
    groups = group_results(
        made(JOBS, [*accs(0.5, None, 0.9), Job(state="failed", metrics={"acc": metric(None)})]), ["lr"]
    )
    assert [made.metrics["acc"].n for made in groups] == [1, 1] and groups[0].metrics["acc"].std is None
    assert groups[0].states == {"succeeded": 1, "failed": 1}
    assert tabulate_groups(groups, ["lr"], made(JOBS, accs(1, 1, 1, 1))).rows[0][-1] == "1 of 2"


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
    assert {len(column.cells) for column in shown.columns} == {4}


def test_what_jobs_used_is_in_the_table_of_all_and_in_conditions() -> None:
    used = {"cpus": 1.5, "memory_bytes": 3_210_000_000, "gpu_percent": 87.0}
    results = made(JOBS, [Job(metrics={"acc": metric(4.0)}, usage=used), *accs(1, 2, 3)])
    shown = tabulate_results(results, everything=True)
    assert shown.names[-4:] == ("CPUs", "peak GB", "GPU %", "job") and {
        len(column.cells) for column in shown.columns
    } == {4}
    assert shown.rows[0][-4:-1] == ("1.5", "3.21", "87") and shown.rows[1][-4:-1] == ("", "", "")
    assert "CPUs" not in tabulate_results(results).names
    assert [row.usage for row in filter_results(results, "memory_bytes > 3e9").rows] == [used]
    assert serialize_row(results.rows[0])["usage"] == used and serialize_row(results.rows[1])["usage"] == {}
    head, first, *_ = "".join(format_results_csv(results)).splitlines()
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
    [
        ((0.9512, 0.9534), "0.952 ± 0.014"),
        ((1, 1), "1 ± 0"),
        ((100, 300), "200 ± 1300"),
        ((1111.1, 1159.7), "1140 ± 310"),
        ((-3.1, 2.9), "0 ± 38"),
        ((9e9, 9.1e9), "9.05e+09 ± 6.4e+08"),
        ((1e-12, 3e-12), None),
    ],
)
def test_means_are_shown_as_precisely_as_they_are_known(values: tuple[float, float], text: str | None) -> None:
    results = made(grid(lr=[1], seed=range(2)), accs(*values))
    shown = tabulate_groups(group_results(results, ["lr"]), ["lr"], results).rows[0][1]
    assert shown == (text or "2e-12 ± 1.3e-11")


def test_parameters_are_exact_as_whoever_copies_one_into_a_spec_needs_them() -> None:
    drawn = [
        {"alpha": 6.108064765e-05, "layers": [0.09301124450070002, 2]},
        {"alpha": 0.09301124450070002, "n": 12345678},
    ]
    shown = tabulate_results(made(drawn, accs(2, 1)))
    first = "6.108064765e-05", "[0.09301124450070002,2]", ""
    assert [row[:3] for row in shown.rows] == [first, ("0.09301124450070002", "", "12345678")]
    assert read(format_results_csv(made(drawn, accs(2, 1))))[0]["alpha"] == "6.108064765e-05"


def test_values_of_a_grid_stay_apart_however_alike_they_are() -> None:
    shown = tabulate_results(made(grid(lr=[0.1, 0.1000001]), accs(2, 1)))
    assert [row[0] for row in shown.rows] == ["0.1", "0.1000001"]


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
    assert {column.name: column.right for column in shown.columns} == {
        "lr": True, "opt": False, "acc": True, "state": False, "time": True, "job": False,
    }  # fmt: skip
    assert [row[0] for row in shown.rows] == ["", "2", "0.1"]
