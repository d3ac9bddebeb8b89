"""Which jobs of a matrix a preview runs: a table of matrices and choices."""

from __future__ import annotations

import random
import time
from array import array
from collections.abc import Sequence
from typing import Any

import pytest

from monkey.plan.preview.row_choice import select_preview_rows
from monkey.spec.job.job_table import JobTable, ParameterColumn
from tests.unit.plan.making import grid, table


def choose(jobs: Sequence[dict[str, Any]], most: int) -> list[str]:
    return [
        " ".join(str(value) for value in jobs[row].values())
        for row in select_preview_rows(table(jobs), range(len(jobs)), most)
    ]


@pytest.mark.parametrize(
    ("jobs", "most", "chosen"),
    [
        # The ends of one axis, then what lies between them, whatever the order in which they are written.
        (grid(lr=[1, 2, 3, 4, 5]), 1, ["1"]),
        (grid(lr=[3, 1, 5, 2, 4]), 2, ["1", "5"]),
        (grid(lr=[3, 1, 5, 2, 4]), 3, ["3", "1", "5"]),
        # Ranks count, not the numbers: 0.01 is the middle.
        (grid(lr=[0.001, 0.01, 1.0]), 3, ["0.001", "0.01", "1.0"]),
        # Opposite corners first, then the other corners, then edges.
        (grid(a=[1, 2, 3], b=[1, 2, 3]), 2, ["1 1", "3 3"]),
        (grid(a=[1, 2, 3], b=[1, 2, 3]), 4, ["1 1", "1 3", "3 1", "3 3"]),
        (grid(a=[1, 2, 3], b=[1, 2, 3], c=[7, 9]), 8, [f"{a} {b} {c}" for a in (1, 3) for b in (1, 3) for c in (7, 9)]),
        # Each name has a job, and so have both ends of the numbers.
        (grid(optimizer=["adam", "sgd", "lion"], lr=[1, 2, 3]), 3, ["adam 1", "sgd 3", "lion 1"]),
        (grid(flag=[True, False], size=[None, 3]), 2, ["True None", "False 3"]),
        # A parameter that is the same in all jobs says nothing.
        (grid(lr=[1, 2, 3], epochs=[5]), 2, ["1 5", "3 5"]),
        # A job in which `when` leaves a parameter out is asked for.
        ([{"a": 1, "m": 0.1}, {"a": 1, "m": 0.5}, {"a": 1, "m": 0.9}, {"a": 1}], 3, ["1 0.1", "1 0.9", "1"]),
        # Fewer than asked for are all of them.
        (grid(lr=[1, 2]), 8, ["1", "2"]),
        (grid(lr=[]), 8, []),
    ],
)
def test_choice(jobs: Sequence[dict[str, Any]], most: int, chosen: list[str]) -> None:
    assert choose(jobs, most) == chosen


def test_only_the_rows_that_are_offered_count() -> None:
    offered = [4, 5, 6, 8]
    assert select_preview_rows(table(grid(lr=range(10))), offered, 2) == [4, 8]


def test_draws_cover_both_ends_of_every_parameter() -> None:
    dice = random.Random(1)
    jobs = [{"a": dice.random(), "b": dice.random(), "c": dice.randrange(9)} for _ in range(300)]
    rows = select_preview_rows(table(jobs), range(300), 6)
    for name in "abc":
        values = [job[name] for job in jobs]
        assert {min(values), max(values)} <= {jobs[row][name] for row in rows}
    assert rows == select_preview_rows(table(jobs), range(300), 6)


def test_a_matrix_of_a_million_jobs_has_its_corners_in_a_second_or_two() -> None:
    wide, long = range(1000), 1000
    columns = {
        "a": ParameterColumn(list(wide), array("i", (a for a in wide for _ in wide))),
        "b": ParameterColumn(list(wide), array("i", (b for _ in wide for b in wide))),
    }
    before = time.process_time()
    rows = select_preview_rows(JobTable([""] * long * long, columns), range(long * long), 8)
    assert {0, 999, 999_000, 999_999} <= set(rows) and len(rows) == 8
    assert time.process_time() - before < 5
