"""A pilot with too little time for the jobs of an agent that is gone releases them: the next need not watch for it."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from monkey.protocol.claims import Claims
from monkey.protocol.entries import Claim, ClaimEnd, EndEntry, TornEntry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.layout import spell_number
from monkey.protocol.sweeps.queue_markers import mark_queue
from monkey.protocol.sweeps.sweep_log import append_revision
from monkey.spec.job.lease_length import LEASE
from monkey.store.create import Won, create_object
from monkey.store.memory import MemoryStore
from monkey.store.store_port import ListedObject
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.scheduling.agent_identity import AgentIdentity
from tests.loops import Run
from tests.signing import SIGNERS
from tests.unit.monkey_agent.scheduling.test_idle_hints import KEYS, SETTINGS
from tests.unit.monkey_agent.scheduling.test_polling import SleptClock
from tests.unit.protocol.sweeps.test_sweep_log import JOBS, REVISION

OWNER, JOB = "f/other/b", JOBS[1]
#: Seconds of a pilot, and those that a job may take: between them there is less than a lease.
WHOLE, TIMEOUT = 200.0, 120.0
#: Seconds between the looks of an agent.
PAUSE = 5.0


class Site:
    """A sweep of one job, and pilots on one clock."""

    def __init__(self, store: MemoryStore | None = None, clock: SleptClock | None = None) -> None:
        self.store, self.clock = store or MemoryStore(), clock or SleptClock()
        self.owner = HeartbeatWriter(self.store, KEYS.beat(OWNER), self.clock)
        self.job, self.permit = EntryLog(KEYS.job_log(JOB)), EntryLog(KEYS.permit_log("a", 0))

    async def apply(self, most: float | None, *, jobs: int | None = None) -> None:
        """Ask for the sweep; `most`: its timeout in seconds; `jobs`: how many of it may run at once."""
        settings = replace(SETTINGS, timeout=most, max_concurrent_jobs=jobs)
        await append_revision(self.store, KEYS, SIGNERS, replace(REVISION, sweep="a", settings=settings), 0)
        await mark_queue(self.store, KEYS, ["f"], "a", 1)

    async def claim(self, *logs: EntryLog) -> None:
        """Have the other agent claim these, and beat once."""
        for log in logs:
            await log.append(self.store, create_object, log.head + 1, Claim(OWNER, 1, 0, "a"))
            self.owner.held.add((log.base, log.head))
        assert await self.owner.beat()

    def start(self, name: str, life: float = WHOLE, *, patience: float | None = PAUSE) -> AgentDaemon:
        """Start a pilot that has so many seconds left; `patience`: its idle timeout, in seconds."""
        identity = AgentIdentity("p", "f", name, "0", [], patience, self.clock.wall() + life, WHOLE)
        slots = SimpleNamespace(take=lambda _: object(), give=lambda _: None, fits=lambda _: True)
        slots.lacking, slots.held_up, slots.held_by_others = "", "", False
        body, rng = cast(Any, SimpleNamespace()), random.Random(1)
        return AgentDaemon(self.store, identity, SIGNERS, self.clock, body, cast(Any, slots), rng)

    async def live(self, *pilots: AgentDaemon, beats: bool = False, most: float = WHOLE) -> float:
        """Let pilots look until each leaves or has a job, or `most` seconds are over; return for how long.

        `beats`: the other agent lives.
        """
        began, left = self.clock.at, list(pilots)
        while left and self.clock.at - began < most:
            assert not beats or await self.owner.beat()
            for agent in left:
                assert await agent.heart.beat()
                await agent._look()
                await agent.dispatcher.fill(agent._leaving.is_set)
                await agent._release_abandoned()
            left = [a for a in left if a.time.left > PAUSE and not a._leaving.is_set() and not a.attempts.in_hand]
            await self.clock.sleep(PAUSE)
        for agent in pilots:
            await agent._abandon()
        return self.clock.at - began

    async def entries(self, log: EntryLog) -> list[tuple[str, str]]:
        """Return whose the entries of a log are, and what they are."""
        await log.refresh(self.store)
        told = [entry for entry in log.entries if not isinstance(entry, TornEntry)]
        return [(one.agent, str(one.outcome) if isinstance(one, EndEntry) else "claim") for one in told]


def test_pilots_release_what_is_abandoned_and_the_next_one_runs_it(run: Run) -> None:
    async def live() -> None:
        site = Site()
        await site.apply(TIMEOUT, jobs=1)
        await site.claim(site.job, site.permit)
        # The permit first: while none is free, no job is looked at.
        for name, then in (("m1", []), ("m2", [("f/m2/0", "claim"), ("f/m2/0", "released")])):
            pilot = site.start(name)
            assert LEASE < await site.live(pilot) < WHOLE - 60, "it leaves once it has released what it met"
            assert not pilot.attempts.in_hand and not pilot.found_nothing and pilot.taken_back
            assert await site.entries(site.job) == [(OWNER, "claim"), *then]
        assert (await site.entries(site.permit))[:3] == [(OWNER, "claim"), ("f/m1/0", "claim"), ("f/m1/0", "released")]
        pilot = site.start("m3")
        assert await site.live(pilot) < 60 and list(pilot.attempts.in_hand) == [JOB]

    run(live())


def test_of_pilots_at_once_one_releases_the_job(run: Run) -> None:
    async def live() -> None:
        site = Site()
        await site.apply(TIMEOUT)
        await site.claim(site.job)
        await site.live(*(site.start(f"m{n}") for n in range(4)))
        assert [what for _, what in await site.entries(site.job)] == ["claim", "claim", "released"]

    run(live())


def test_job_that_only_a_pilot_with_more_time_may_run_is_released_by_one_that_is_half_over(run: Run) -> None:
    async def live() -> None:
        site = Site()
        await site.apply(None)
        await site.claim(site.job)
        cut = EndEntry(ClaimEnd.RELEASED, OWNER, 1, "a", pilot_time=WHOLE)
        await site.job.append(site.store, create_object, 2, cut)
        await site.claim(site.job)
        await site.live(site.start("m1", WHOLE / 2 + 2 * PAUSE))
        assert (await site.entries(site.job))[3:] == [("f/m1/0", "claim"), ("f/m1/0", "released")]
        pilot = site.start("m2")
        assert await site.live(pilot) < 60 and list(pilot.attempts.in_hand) == [JOB]

    run(live())


def test_pilot_leaves_the_jobs_of_a_living_agent_alone(run: Run) -> None:
    async def live() -> None:
        site = Site()
        await site.apply(TIMEOUT)
        await site.claim(site.job)
        pilots = [site.start(f"m{n}") for n in range(2)]
        assert WHOLE - TIMEOUT <= await site.live(*pilots, beats=True) <= WHOLE - TIMEOUT + 6 * PAUSE
        assert all(pilot.taken_back for pilot in pilots) and await site.entries(site.job) == [(OWNER, "claim")]

    run(live())


def test_pilot_does_not_take_what_a_living_agent_gave_back(run: Run) -> None:
    async def live() -> None:
        site = Site()
        await site.apply(TIMEOUT)
        await site.claim(site.job)
        pilot = site.start("m1", TIMEOUT + 3 * PAUSE, patience=None)
        await site.live(pilot, beats=True, most=5 * PAUSE)
        await site.job.append(site.store, create_object, 2, EndEntry(ClaimEnd.RELEASED, OWNER, 1, "a"))
        site.owner.held.clear()
        await site.live(pilot, beats=True)
        assert await site.entries(site.job) == [(OWNER, "claim"), (OWNER, "released")]

    run(live())


class SlowStore(MemoryStore):
    """Takes its time for a listing of checkpoints."""

    def __init__(self, clock: SleptClock, seconds: float) -> None:
        super().__init__()
        self.clock, self.seconds = clock, seconds

    async def list(self, prefix: str, after: str = "") -> list[ListedObject]:
        if prefix == KEYS.checkpoints(JOB):
            self.clock.at += self.seconds
        return await super().list(prefix, after)


@pytest.mark.parametrize(("seconds", "claimed"), [(1.0, True), (50.0, False)])
def test_job_that_no_longer_fits_once_its_log_was_read_is_not_claimed(run: Run, seconds: float, claimed: bool) -> None:
    async def live() -> None:
        clock = SleptClock()
        site = Site(SlowStore(clock, seconds), clock)
        await site.apply(TIMEOUT)
        await site.claim(site.job)
        site.owner.held.clear()
        assert await site.owner.beat(), "it gives the job back"
        pilot = site.start("m1", TIMEOUT + 40, patience=None)
        await site.live(pilot, most=PAUSE)
        assert bool(pilot.attempts.in_hand) is claimed
        assert len(await site.entries(site.job)) == 1 + claimed

    run(live())


def test_claim_of_a_job_that_was_lost_says_how_long_it_ran_by_its_agents_last_heartbeat(run: Run) -> None:
    async def live() -> None:
        site = Site()
        await site.apply(None)
        site.owner.vitals = lambda: {"running": [{"job": JOB, "began": site.clock.at - 77.0}]}
        await site.claim(site.job)
        site.clock.at += LEASE
        pilot = site.start("m1", life=10_000.0)
        await site.live(pilot)
        assert await site.entries(site.job) == [(OWNER, "claim"), ("f/m1/0", "claim")]
        taken = site.job.tail
        assert isinstance(taken, Claim) and taken.lost_seconds == 77.0

    run(live())


class BucketOfThree(MemoryStore):
    """A store in which looking costs money, so that agents in a crowd share what they read."""

    poll = 10.0


def test_job_whose_claim_was_cut_short_is_taken_over_in_a_crowd(run: Run) -> None:
    async def live() -> None:
        site = Site(BucketOfThree())
        await site.apply(None)
        await site.store.put(KEYS.job_log(JOB) + spell_number(1), b"{")
        pilot = site.start("m1", life=10_000.0, patience=None)
        pilot.observer.crowd = 0
        pilot.heart.collect = lambda: None
        said: list[str] = []
        pilot.errors.say = said.append
        await site.live(pilot, beats=True)
        assert pilot.observer.crowded and not said
        assert list(pilot.attempts.in_hand) == [JOB]

    run(live())


def test_suspicion_outlives_a_roster_that_knows_of_a_longer_silence(run: Run) -> None:
    site, since = Site(), [10.0, 9.9, 12.0]
    run(site.claim(site.job))
    seen: Any = SimpleNamespace(me="f/m1/0", gone=lambda _: False, silent_since=lambda _: since.pop(0))
    claims = Claims(site.store, create_object, site.owner, seen, site.clock)
    assert [claims.is_suspect(site.job) for _ in range(3)] == [True, True, False], "it lives, as it was heard of"


def test_claim_that_is_cancelled_is_not_held(run: Run) -> None:
    async def live() -> None:
        site = Site()

        async def create(*_: object, **__: object) -> Won:
            await asyncio.Event().wait()
            raise AssertionError("unreachable")

        agent = site.start("m1")
        assert await agent.heart.beat()
        claims = Claims(site.store, create, agent.heart, agent.observer, site.clock)
        task = asyncio.ensure_future(claims.take(site.job, "a"))
        await asyncio.sleep(0)
        assert agent.heart.held == {(site.job.base, 1)}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled() and not agent.heart.held

    run(live())
