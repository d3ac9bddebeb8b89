from __future__ import annotations

import statistics
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.cli.render.results_table import format_groups
from monkey.cli.terminal.text import Terminal
from monkey.errors import MonkeyError
from monkey.results.export import serialize_row
from monkey.results.groups import find_parameters, group_results, serialize_group, summarize_values
from monkey.results.result_filter import filter_results
from monkey.results.result_rows import explain_unmeasured
from monkey.results.t_interval import find_t_quantile
from tests.unit.plan.making import grid
from tests.unit.results.sample_results import JOBS, Job, accs, made, metric, ranked


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
    assert ranked(made(JOBS, seen, "best"))[0] == 0.99
    results = made(JOBS, seen, take="best")
    assert results.best is not None and results.best.metrics["acc"] == 0.99


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


def test_groups_are_ranked_by_their_means_whoever_has_the_best_job() -> None:
    for maximize, values in ((True, (0.99, 0.1, 0.6, 0.7)), (False, (0.1, 0.99, 0.4, 0.5))):
        groups = group_results(made(JOBS, accs(*values), maximize=maximize), ["lr"])
        assert [group.parameters for group in groups] == [{"lr": 0.2}, {"lr": 0.1}]
    groups = group_results(made(JOBS, accs(None, None, 0.6, 0.7)), ["lr"])
    assert [group.parameters for group in groups] == [{"lr": 0.2}, {"lr": 0.1}]


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
        find_parameters(["lrr"], made(JOBS, accs(1, 2, 3, 4)))
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


@pytest.mark.parametrize(("freedom", "quantile"), [
    (1, 12.7062), (2, 4.3027), (4, 2.7764), (9, 2.2622), (29, 2.0452), (99, 1.9842), (100, 1.9840), (1000, 1.9623),
])  # fmt: skip
def test_quantiles_of_students_t_are_those_of_the_tables(freedom: int, quantile: float) -> None:
    assert find_t_quantile(freedom) == pytest.approx(quantile, abs=5e-5)


@pytest.mark.parametrize(("freedom", "confidence", "quantile"), [
    (3, 0.95, 3.1824463052837078), (99, 0.95, 1.9842169515864174),
    (100, 0.95, 1.9839715185235518), (100, 0.99, 2.6258905214380173), (150, 0.95, 1.9759053308966201),
])  # fmt: skip
def test_quantiles_of_students_t_are_those_of_scipy_to_nine_digits(
    freedom: int, confidence: float, quantile: float
) -> None:
    assert find_t_quantile(freedom, confidence) == pytest.approx(quantile, rel=1e-9)


def test_the_interval_is_students_t() -> None:
    found = summarize_values([0.1, 0.2, 0.3])
    assert found.ci95 == pytest.approx(4.302653 * 0.1 / 3**0.5, rel=1e-6)
    assert summarize_values([0.1]).ci95 is None


def test_a_metric_that_diverged_stands_last_and_its_best_value_shows_only_when_asked_for() -> None:
    seen = [Job(metrics={"acc": {**metric(None, nonfinite=1), "max": 0.99}}), *accs(0.7, 0.6, 0.5)]
    for take, value in (("last", None), ("best", 0.99)):
        results = made(JOBS, seen, take=take)
        row = serialize_row(results.rows[3])
        assert (row["diverged"], row["counts"], row["metrics"]["acc"]) == (True, False, value)
        assert results.best is not None and results.best.metrics["acc"] == 0.7


@pytest.mark.needs("pandas")
def test_groups_that_mix_other_parameters_than_repeats_say_which() -> None:
    import pandas

    rows = grid(lr=[0.1, 0.2], batch=[16, 32], trial=range(2), seed=range(2))
    seen = accs(*(0.1 * at for at in range(len(rows))))
    frame = pandas.DataFrame(rows).assign(acc=[one.metrics["acc"]["last"] for one in seen])
    for names in (["lr"], ["batch"], ["lr", "batch"], ["lr", "batch", "trial"], ["seed"]):
        groups = group_results(made(rows, seen, repeats=["trial"]), names)
        shown = [serialize_group(group) for group in groups]
        spread = frame.groupby(names)["acc"].agg(["mean", "count"]).reset_index().set_index([*names, "count"])["mean"]
        for group in shown:
            acc = group["metrics"]["acc"]
            assert acc["mean"] == pytest.approx(spread[(*group["parameters"].values(), acc["n"])])
            assert group["mixed"] == [name for name in ("lr", "batch") if name not in names]
    assert group_results(made(rows, seen), ["lr", "batch"])[0].mixed == ["trial"], "a name that says nothing"


def test_only_jobs_that_count_are_mixed() -> None:
    rows = [{"lr": 0.1, "wd": 0.0}, {"lr": 0.1}, {"lr": 0.2, "wd": 1}, {"lr": 0.2, "wd": 2}]
    groups = group_results(made(rows, [*accs(0.5, 0.6, 0.1), Job(state="failed")]), ["lr"])
    assert [group.mixed for group in groups] == [["wd"], []], "a parameter that a job lacks is another configuration"


def test_a_table_of_groups_says_what_its_means_are_over() -> None:
    rows = grid(lr=[0.1, 0.2], batch=[16, 32], seed=range(2))
    results = made(rows, accs(*(0.1 * at for at in range(len(rows)))))
    groups = group_results(results, ["lr"])
    lines = format_groups(groups, ["lr"], results, Terminal(None), everything=False, top=None)
    note = "n counts jobs that differ by more than a repeat: by batch (--group-by lr,batch keeps them apart)"
    assert lines[-1] == f"… {note}"
    whole = group_results(results, ["lr", "batch"])
    lines = format_groups(whole, ["lr", "batch"], results, Terminal(None), everything=False, top=None)
    assert not any("repeat" in line for line in lines)
