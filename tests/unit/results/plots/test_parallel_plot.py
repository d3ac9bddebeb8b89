"""The heat map says which values the best jobs have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.results.plots.parallel_plot import COLUMNS, ROWS, make_parallel_plot, tabulate_heat
from tests.unit.plan.making import grid
from tests.unit.results.sample_results import Job, accs, made, metric


def test_a_value_that_makes_jobs_good_is_on_the_left() -> None:
    jobs = grid(lr=[1, 2], kind=["x", "y"], seed=range(5))
    plot = make_parallel_plot(made(jobs, accs(*(job["lr"] + job["seed"] / 100 for job in jobs))), "acc")
    rows = {(row.name, row.value): row for row in tabulate_heat(plot)}
    assert rows.keys() >= {("lr", "1"), ("lr", "2"), ("kind", "x"), ("kind", "y"), ("seed", "4")}
    good, bad = rows["lr", "2"], rows["lr", "1"]
    assert sum(good.shares[:5]) == pytest.approx(1) and sum(bad.shares[5:]) == pytest.approx(1)
    assert good.mean == pytest.approx(2.02) and good.jobs == 10
    assert rows["kind", "x"].shares == pytest.approx(rows["kind", "y"].shares)


def test_a_metric_that_ranks_nothing_is_ordered_by_its_value() -> None:
    seen = [Job(metrics={"acc": metric(1.0), "loss": metric(loss)}) for loss in (3.0, 1.0, 2.0)]
    plot = make_parallel_plot(made([{"a": 1}, {"a": 2}, {"a": 3}], seen), "loss")
    assert plot.values == [1.0, 2.0, 3.0] and not plot.ranks


@given(st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=60, unique=True))
def test_every_job_is_in_one_row_of_each_parameter(drawn: list[float]) -> None:
    plot = make_parallel_plot(made([{"p": value} for value in drawn], accs(*drawn)), "acc")
    rows = tabulate_heat(plot)
    assert len(rows) <= ROWS and sum(row.jobs for row in rows) == len(drawn)
    for row in rows:
        assert len(row.shares) == min(COLUMNS, len(drawn)) and sum(row.shares) == pytest.approx(1)


def test_values_of_a_row_are_exact() -> None:
    lrs = [0.001953125, 0.0019531, 16]
    plot = make_parallel_plot(made(grid(lr=lrs, seed=range(2)), accs(*map(float, range(6)))), "acc")
    assert [row.value for row in tabulate_heat(plot) if row.name == "lr"] == ["0.0019531", "0.001953125", "16"]
