"""Lines of points of jobs: what each was, how it ranks, and which revision has it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.metrics import names
from monkey.metrics.influx.state_points import (
    JobAttempt,
    SweepJob,
    compute_rank,
    write_beginning_point,
    write_end_point,
    write_membership_point,
    write_revision_point,
)
from monkey.protocol.entries import ClaimEnd, EndEntry
from monkey.results.result_rows import rank_places
from monkey.spec.job.job_table import JobTable, ParameterColumn
from monkey.spec.job.recipe import MetricTake, SweepSettings
from monkey.spec.job.stop_when import StopRule

JOB = "0123456789abcdef"
WHOSE = JobAttempt(2, "gpu1", "ana@lab")


def sweep_job(settings: SweepSettings, **parameters: Any) -> SweepJob:
    """Return a job of a table of two, whose first parameter alone varies."""
    columns = {
        name: ParameterColumn([value, "another"], [0, 0 if at else 1])
        for at, (name, value) in enumerate(parameters.items())
    }
    return SweepJob("digits", 7, JobTable([JOB, "f" * 16], columns), 0, settings)


def end(outcome: ClaimEnd = ClaimEnd.SUCCEEDED, **fields: Any) -> EndEntry:
    return EndEntry(outcome, "lab/gpu1/8f", 1, **{"at": 1790000000.123, **fields})


def test_a_job_that_succeeded() -> None:
    summary = {
        "loss": {"last": 0.5, "min": 0.25, "max": 1, "nonfinite": 2},
        "broken": {"last": None, "min": None, "max": None, "nonfinite": 1},
        "huge": {"last": 10**400, "min": 1.0, "max": 10**400, "nonfinite": 0},
    }
    parameters = {"lr": 0.1, "optimizer.name": "sgd", "layers": [1, 2], "amp": True, "none": None}
    of = sweep_job(SweepSettings(), **parameters)
    line = write_end_point(of, WHOSE, end(exit_code=0, seconds=9, before=3, metrics=summary), 5)
    rank = compute_rank(None, counts=True, maximize=False)
    assert line.decode() == (
        'jobs,job=0123456789abcdef,sweep=digits state="succeeded",attempt=2i,host="gpu1",'
        'label="lr=0.1 · 0123456789abcdef",user="ana@lab",seconds=12.0,exit_code=0i,'
        f"nonfinite=3i,counts=true,ranked={rank}i,jobs=2i,revision=7i,since=0i,"
        'param_lr="0.1",number_lr=0.1,param_optimizer.name="sgd",param_layers="[1, 2]",'
        'param_amp="true",number_amp=1.0,final_loss=0.5,min_loss=0.25,max_loss=1.0,min_huge=1.0 1790000000123000005\n'
    )


@pytest.mark.parametrize(
    ("metric", "maximize", "last", "take", "told"),
    [
        ("acc", True, 0.5, "last", (0.5, True)),
        ("acc", False, 0.5, "last", (0.5, True)),
        ("acc", True, None, "last", (None, False)),
        ("acc", True, 0.5, "best", (0.75, True)),
        ("acc", True, None, "best", (None, False)),
        ("loss", True, 0.5, "last", (None, True)),
        (None, False, 0.5, "last", (None, True)),
    ],
)
def test_a_job_is_ranked_by_what_its_sweep_names(
    metric: str | None, maximize: bool, last: float | None, take: MetricTake, told: tuple[float | None, bool]
) -> None:
    settings = SweepSettings(metric=metric, maximize=maximize, take=take)
    summary = {"acc": {"last": last, "min": None, "max": 0.75 if take == "best" else None, "nonfinite": 0}}
    line = write_end_point(sweep_job(settings), WHOSE, end(metrics=summary), 5).decode()
    value, counts = told
    assert (f"objective={value}," in line) if value is not None else ("objective" not in line)
    assert (
        f"counts={'true' if counts else 'false'},ranked={compute_rank(value, counts=counts, maximize=maximize)}i"
        in line
    )


def test_a_goal_counts_and_a_pruned_job_does_not() -> None:
    rules = [StopRule("acc", above=0.9, sweep=True), StopRule("acc", below=0.1)]
    of = sweep_job(SweepSettings(metric="acc", maximize=True, stop_when=rules))
    told = {value: {"metric": "acc", "value": value} for value in (0.95, 0.05)}
    goal, pruned = (write_end_point(of, WHOSE, end(ClaimEnd.STOPPED, met=met), 5) for met in told.values())
    assert b"counts=true" in goal and b"counts=false" in pruned


values = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(st.one_of(st.none(), values), st.booleans()), max_size=20), st.booleans())
def test_ranks_have_the_order_of_results(jobs: list[tuple[float | None, bool]], maximize: bool) -> None:
    ranks = [compute_rank(value, counts=counts, maximize=maximize) for value, counts in jobs]
    places = rank_places([value for value, _ in jobs], [counts for _, counts in jobs], maximize=maximize)
    # Of two values that differ in the last bits of their mantissa alone, either may be first.
    assert sorted(ranks, reverse=True) == [ranks[at] for at in places]
    assert all(-(1 << 63) <= rank < 1 << 63 for rank in ranks)


def test_a_point_becomes_one_of_another_revision() -> None:
    of = sweep_job(SweepSettings())
    first, second = write_beginning_point(of, WHOSE, 1790000000.123, 4), write_end_point(of, WHOSE, end(), 5)
    again = write_membership_point("digits", JOB, 1790000000.123, 5, 8)
    assert again == b"jobs,job=0123456789abcdef,sweep=digits revision=8i 1790000000123000005\n"
    assert (first.split()[-1], second.split()[-1]) == (b"1790000000123000004", again.split()[-1])
    assert first.startswith(b'jobs,job=0123456789abcdef,sweep=digits state="running"')
    assert write_revision_point("digits", 8, 1.0, 40) == b"jobs,sweep=digits jobs=40i,revision=8i,since=8i 1000000008\n"
    assert names.SINCE == "since"
