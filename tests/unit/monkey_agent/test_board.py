"""The order in which an agent looks at a sweep's jobs."""

from __future__ import annotations

import random

from monkey.protocol.revision import Revision
from monkey.protocol.sweeps import SweepState
from monkey.spec.recipe import Recipe, Settings
from monkey.spec.table import Column, JobTable
from monkey_agent.board import FORESEEN, Board

JOBS = [f"{n:016x}" for n in range(3 * FORESEEN + 1)]


def board(adopted: dict[str, str]) -> Board:
    table = JobTable(JOBS, {"i": Column(list(range(len(JOBS))), list(range(len(JOBS))))})
    revision = Revision(sweep="s", recipe=Recipe(["true"], "c" * 64), settings=Settings(), table=table, adopted=adopted)
    return Board(SweepState("s", 1, revision), random.Random(1))


def test_every_job_is_foreseen_once_and_before_its_turn() -> None:
    walk, foreseen, met = board({JOBS[5]: JOBS[6]}), set[str](), []
    while True:
        fresh = walk.foresee()
        assert foreseen.isdisjoint(fresh)
        foreseen.update(fresh)
        if (job := walk.next(0.0, 0)) is None:
            break
        assert job in foreseen
        met.append(job)
    assert sorted(met) == sorted(set(JOBS) - {JOBS[5]}) == sorted(foreseen)


def test_who_foresees_nothing_meets_the_same_jobs_in_the_same_order() -> None:
    some, other = board({}), board({})
    order = []
    for job in iter(lambda: some.next(0.0, 0), None):
        some.foresee()
        order.append(job)
    assert order == list(iter(lambda: other.next(0.0, 0), None))
    assert len(order) == len(JOBS)
