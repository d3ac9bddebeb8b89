"""What the dispatcher begins, what it tells of an attempt, and what becomes of a job whose attempt is over."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from monkey.protocol.entries import Claim, ClaimEnd, EndEntry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.sweeps.queue_markers import mark_queue
from monkey.protocol.sweeps.sweep_log import append_revision
from monkey.spec.job.recipe import JobResources
from monkey.store.create import create_object
from monkey.store.memory import MemoryStore
from monkey_agent.ports import AttemptEnd, AttemptOutcome
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.scheduling.agent_identity import AgentIdentity
from tests.loops import Run
from tests.signing import SIGNERS
from tests.unit.monkey_agent.scheduling.test_attempts import TURNS, Running
from tests.unit.monkey_agent.scheduling.test_idle_hints import KEYS, SETTINGS
from tests.unit.monkey_agent.scheduling.test_polling import SleptClock
from tests.unit.protocol.sweeps.test_sweep_log import JOBS, REVISION

JOB, OTHER = JOBS[1], "f/other/0"
EARLIER = ["f/m/1", "f/m/2"]
ENDED = EndEntry(ClaimEnd.RELEASED, OTHER, 1, "a")


async def apply(store: MemoryStore, sweep: str, **settings: Any) -> None:
    """Apply a sweep of one job."""
    revision = replace(REVISION, sweep=sweep, settings=replace(SETTINGS, **settings))
    await append_revision(store, KEYS, SIGNERS, revision, 0)
    await mark_queue(store, KEYS, ["f"], sweep, 1)


async def start(store: MemoryStore, runner: object = None) -> AgentDaemon:
    """Apply a sweep of one job, and start an agent that has looked."""
    await apply(store, "a")
    slots = SimpleNamespace(take=lambda _: object(), give=lambda _: None, fits=lambda _: True)
    slots.lacking, slots.held_up, slots.held_by_others = "", "", False
    slots.wanted_by_others = False
    identity = AgentIdentity("p", "f", "m", "3", frozenset(EARLIER), 1.0)
    runner = cast(Any, runner or SimpleNamespace())
    agent = AgentDaemon(store, identity, SIGNERS, SleptClock(), runner, cast(Any, slots), random.Random(1))
    assert await agent.heart.beat()
    await agent._look()
    return agent


@pytest.mark.parametrize(
    ("before", "since"),
    [
        ([], 1),
        ([Claim(EARLIER[0], 1, 0, "a")], 1),
        ([Claim(EARLIER[0], 1, 0, "a"), Claim(EARLIER[1], 1, 0, "a")], 1),
        ([Claim(OTHER, 1, 0, "a"), ENDED, Claim(EARLIER[1], 1, 0, "a")], 3),
        ([Claim(EARLIER[0], 1, 0, "a"), Claim(OTHER, 1, 0, "a"), ENDED], 4),
    ],
    ids=["the first", "an earlier life", "two of them", "another before", "another between"],
)
def test_attempt_says_since_when_the_job_is_this_machines(run: Run, before: list[Any], since: int) -> None:
    """An exit that an earlier life noted is this attempt's if nobody else had the job since."""

    async def live() -> None:
        store, log = MemoryStore(), EntryLog(KEYS.job_log(JOB))
        for entry in before:
            assert await log.append(store, create_object, log.head + 1, entry)
        agent = await start(store)
        await agent.dispatcher.fill(lambda: False)
        attempt = agent.attempts.in_hand[JOB].attempt
        assert (attempt.k, attempt.ours_since) == (len(before) + 1, since)
        await agent._abandon()

    run(live())


class Processes:
    """A runner whose attempts end as they are told."""

    def __init__(self, *ends: AttemptEnd) -> None:
        self.ends = list(ends)
        self.hold: asyncio.Event | None = None

    async def start(self, *_: object) -> Running:
        if self.hold:
            await self.hold.wait()
        return Running(AttemptOutcome(self.ends.pop(0)))


async def settle() -> None:
    """Let all that can be done be done."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


def test_job_whose_supervisor_died_is_run_again_after_the_next_look(run: Run) -> None:
    async def live() -> None:
        store, processes = MemoryStore(), Processes(AttemptEnd.LOST, AttemptEnd.SUCCEEDED)
        agent = await start(store, processes)
        agent.heart.vitals, agent.heart.collect = dict, lambda: None
        for left in (1, 0):
            await agent.dispatcher.fill(lambda: False)
            await settle()
            assert len(processes.ends) == left
            await agent._look()
        log = EntryLog(KEYS.job_log(JOB))
        await log.refresh(store)
        told = [str(entry.outcome) if isinstance(entry, EndEntry) else "claim" for entry in log.entries]
        assert told == ["claim", "claim", "succeeded"]
        await agent._abandon()

    run(live())


def test_job_whose_sweep_was_left_alone_meanwhile_ends_without_a_word(run: Run) -> None:
    async def live() -> None:
        processes = Processes(AttemptEnd.SUCCEEDED)
        processes.hold = asyncio.Event()
        agent = await start(MemoryStore(), processes)
        agent.heart.vitals, agent.heart.collect = dict, lambda: None
        said: list[str] = []
        agent.errors.say = said.append
        await agent.dispatcher.fill(lambda: False)
        await settle()
        agent.queue.by_sweep.pop("a")
        processes.hold.set()
        await settle()
        assert not said and not agent.attempts.in_hand
        await agent._abandon()

    run(live())


async def claim(store: MemoryStore, base: str, sweep: str) -> None:
    """Have another agent, which lives, claim something."""
    assert await EntryLog(base).append(store, create_object, 1, Claim(OTHER, 1, 0, sweep))
    heart = HeartbeatWriter(store, KEYS.beat(OTHER), SleptClock())
    heart.held.add((base, 1))
    assert await heart.beat()


def test_sweep_that_ended_while_another_was_looked_at_is_no_trouble(run: Run) -> None:
    async def live() -> None:
        store = EndingStore()
        await apply(store, "b")
        agent = await start(store)
        said: list[str] = []
        agent.errors.say = said.append
        await claim(store, KEYS.job_log(JOB), "a")
        await agent._look()
        await agent.dispatcher.fill(lambda: False)  # it learns whose the job is
        await agent._look()
        first, second = agent.queue.order()
        store.then = lambda: agent.queue.by_sweep.pop(second, None)
        await agent.dispatcher.fill(lambda: False)
        assert first in agent.queue.by_sweep and second not in agent.queue.by_sweep
        assert not said and not any(agent.dispatcher.alerts)
        await agent._abandon()

    run(live())


class EndingStore(MemoryStore):
    """Lets something happen when a job's log is read next."""

    then: Callable[[], object] | None = None

    async def get(self, key: str) -> bytes:
        if self.then and key.startswith(KEYS.jobs):
            self.then()
            self.then = None
        return await super().get(key)


def test_slots_are_not_kept_free_for_a_job_that_lacks_a_permit(run: Run) -> None:
    large = JobResources(cpus=8)

    async def live() -> None:
        store = MemoryStore()
        await apply(store, "large", priority=5, max_concurrent_jobs=1, resources=large)
        await claim(store, KEYS.permit_log("large", 0), "large")
        agent = await start(store)
        slots: Any = agent.dispatcher._slots
        slots.take = lambda asked: None if asked == large else object()
        await agent.dispatcher.fill(lambda: False)
        assert not any(agent.dispatcher.alerts), "neither is set aside"
        assert [work.sweep for work in agent.attempts.in_hand.values()] == ["a"]
        await agent._abandon()

    run(live())
