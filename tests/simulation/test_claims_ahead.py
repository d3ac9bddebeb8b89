"""Jobs that are claimed ahead in vain: each is released once, and not claimed and released in a circle."""

from __future__ import annotations

from collections import Counter

from monkey.errors import StoreRefused
from monkey.protocol.entries import ClaimEnd, EndEntry
from monkey_agent.ports import Attempt, AttemptOutcome
from tests.simulation.body import KEYS, Execution, job_id
from tests.simulation.life import Life
from tests.simulation.test_faults_alone import JOBS, ends, live
from tests.simulation.world import World

#: Number of short jobs that come first: after them, jobs are claimed ahead.
SHORT = 3


class LongExecution(Execution):
    """An attempt that runs for a minute and a half."""


class FullStoreExecution(Execution):
    """An attempt whose outputs find no room in the store for a while after it has ended."""

    async def wait(self) -> AttemptOutcome:
        outcome = await super().wait()
        if self.world.loop.time() < 250:
            raise StoreRefused("no space left on the store's disk")
        return outcome


def run_after_short_ones(kind: type[Execution], seconds: float) -> tuple[World, Counter[str]]:
    """Let an agent run short jobs, then some of this kind; returns how often each job was released."""

    def prepare(life: Life) -> None:
        made: list[Execution] = []

        def make(attempt: Attempt) -> Execution:
            short = len(made) < SHORT
            execution = (Execution if short else kind)(life.body, attempt)
            execution.left = 2 if short else seconds
            made.append(execution)
            return execution

        life.body.make = make
        life.body._preparation = _prepare_at_once
        life.slots.count = life.slots.left = 1

    world, _ = live(prepare)
    logs = {job: world.log(KEYS.job_log(job)) for job in map(job_id, JOBS)}
    released = Counter(
        job
        for job, log in logs.items()
        for entry in log.entries
        if isinstance(entry, EndEntry) and entry.outcome is ClaimEnd.RELEASED
    )
    return world, released


def _prepare_at_once() -> float:
    return 0.01


def test_a_long_job_after_short_ones_lets_another_agent_have_the_next_job_once_and_for_all() -> None:
    world, released = run_after_short_ones(LongExecution, 90)
    assert set(ends(world).values()) == {ClaimEnd.SUCCEEDED}
    assert 1 <= released.total() <= len(JOBS) - SHORT, released


def test_on_a_full_store_nothing_is_claimed_and_released_in_a_circle() -> None:
    world, released = run_after_short_ones(FullStoreExecution, 2)
    assert set(ends(world).values()) == {ClaimEnd.SUCCEEDED}
    assert released.total() <= 1, released
