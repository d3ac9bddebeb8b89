"""The order in which an agent looks at the jobs of a sweep."""

from __future__ import annotations

import random

from monkey.protocol.sweeps.sweep_state import SweepState
from monkey.spec.job.recipe import SweepSettings
from monkey_agent.scheduling.job_candidates import JobCandidates
from tests.simulation.body import job_id
from tests.simulation.story import revision


def begin_walk(count: int) -> JobCandidates:
    """Return the candidates of a sweep of so many jobs."""
    state = SweepState("a", 1, revision("a", range(count), SweepSettings()), 1)
    return JobCandidates(state, random.Random(1))


def examine_all(candidates: JobCandidates, look: int) -> list[str]:
    """Return the jobs in the order in which they are examined at a look; all are busy."""
    found = []
    while job := candidates.next(0.0, look):
        candidates.busy(job, look)
        found.append(job)
    return found


def test_busy_jobs_of_silent_agents_come_first_and_once_a_look() -> None:
    candidates = begin_walk(9)
    order = examine_all(candidates, 1)
    assert sorted(order) == [job_id(n) for n in range(9)]
    candidates.hurry([order[7], "no job of it", order[4]], 2)
    others = [job for job in order if job not in (order[7], order[4])]
    assert examine_all(candidates, 2) == [order[7], order[4], *others]


def test_job_that_waits_or_is_final_is_not_examined_for_its_agents_silence() -> None:
    candidates = begin_walk(4)
    waits, final, *others = examine_all(candidates, 1)
    candidates.wait(waits, 100.0)
    candidates.drop(final)
    candidates.hurry([final, waits], 2)
    assert examine_all(candidates, 2) == others


def test_job_of_a_silent_agent_is_examined_before_the_walk_comes_to_it_and_not_again_by_the_walk() -> None:
    candidates, jobs = begin_walk(9), [job_id(n) for n in range(9)]
    first = candidates.next(0.0, 1)
    assert first is not None
    candidates.busy(first, 1)
    early, final = [job for job in jobs if job != first][:2]
    candidates.hurry([early, "no job of it", final], 1)
    assert candidates.next(0.0, 1) == early
    candidates.busy(early, 1)
    assert candidates.next(0.0, 1) == final
    candidates.drop(final)
    candidates.hurry([final], 1)
    assert sorted([first, early, final, *examine_all(candidates, 1)]) == jobs
