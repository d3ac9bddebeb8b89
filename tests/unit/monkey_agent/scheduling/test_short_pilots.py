"""A pilot with too little time for the jobs of an agent that is gone releases them: the next need not watch for it."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from monkey.protocol.entries import Claim, EndEntry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.layout import spell_number
from monkey.protocol.sweeps.queue_markers import mark_queue
from monkey.protocol.sweeps.sweep_log import append_revision
from monkey.spec.job.lease_length import LEASE
from monkey.store.memory import MemoryStore
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
    """A sweep of one job at a time, which another agent has claimed, and pilots on one clock."""

    def __init__(self) -> None:
        self.store, self.clock = MemoryStore(), SleptClock()
        self.owner = HeartbeatWriter(self.store, KEYS.beat(OWNER), self.clock)
        self.logs = KEYS.job_log(JOB), KEYS.permit_log("a", 0)
        self.owner.held |= {(log, 1) for log in self.logs}

    async def fill(self) -> None:
        """Put the sweep, and what the other agent claimed, into the store."""
        settings = replace(SETTINGS, timeout=TIMEOUT, max_concurrent_jobs=1)
        await append_revision(self.store, KEYS, SIGNERS, replace(REVISION, sweep="a", settings=settings), 0)
        await mark_queue(self.store, KEYS, ["f"], "a", 1)
        for log in self.logs:
            await self.store.create(log + spell_number(1), Claim(OWNER, 1, 0, "a").encode())
        assert await self.owner.beat()

    async def pilot(self, name: str, life: float = WHOLE, *, beats: bool = False) -> AgentDaemon:
        """Let a pilot look for so many seconds, or until it leaves; `beats`: while the other agent lives."""
        identity = AgentIdentity("p", "f", name, "0", [], PAUSE, self.clock.wall() + life, WHOLE)
        slots = SimpleNamespace(
            fits=lambda _: True,
            take=lambda _: object(),
            give=lambda _: None,
            lacking="",
            held_up="",
            held_by_others=False,
        )
        body, began = cast(Any, SimpleNamespace()), self.clock.at
        agent = AgentDaemon(self.store, identity, SIGNERS, self.clock, body, cast(Any, slots), random.Random(1))
        while agent.time.left > 0 and not agent._leaving.is_set() and not agent.attempts.in_hand:
            assert await agent.heart.beat() and (not beats or await self.owner.beat())
            await agent._look()
            await agent.dispatcher.fill(agent._leaving.is_set)
            await agent._release_lost()
            await self.clock.sleep(PAUSE)
        await agent._abandon()
        self.stayed = self.clock.at - began
        return agent

    async def releasers(self) -> list[str]:
        """Return who released what the other agent had claimed: the job, and the permit; "" for nobody."""
        found = []
        for base in self.logs:
            log = EntryLog(base)
            await log.refresh(self.store)
            end = log.entries[2] if log.head > 2 else None
            found.append(end.agent.split("/")[1] if isinstance(end, EndEntry) else "")
        return found


def test_pilots_release_what_is_lost_and_the_next_one_runs_it(run: Run) -> None:
    async def live() -> None:
        site = Site()
        await site.fill()
        for name, releasers in (("m1", ["", "m1"]), ("m2", ["m2", "m1"])):
            pilot = await site.pilot(name)
            assert not pilot.attempts.in_hand and not pilot.found_nothing and pilot.taken_back
            assert await site.releasers() == releasers, "the permit first: while it is not free, no job is looked at"
            assert LEASE < site.stayed < WHOLE - 60, "it leaves once it has released it"
        pilot = await site.pilot("m3")
        assert list(pilot.attempts.in_hand) == [JOB] and site.stayed < 60

    run(live())


def test_pilot_does_not_stay_for_the_jobs_of_a_living_agent(run: Run) -> None:
    async def live() -> None:
        site = Site()
        await site.fill()
        pilot = await site.pilot("m1", beats=True)
        assert WHOLE - TIMEOUT <= site.stayed <= WHOLE - TIMEOUT + 6 * PAUSE
        assert pilot.taken_back and await site.releasers() == ["", ""]

    run(live())
