"""Permits: whose are free, and of which the store need not be asked."""

from __future__ import annotations

import random
from dataclasses import replace

from monkey.protocol.claims import Claims
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.layout import Keys
from monkey.protocol.liveness.observer import HeartbeatObserver
from monkey.protocol.sweeps.permits import Permits
from monkey.protocol.sweeps.sweep_state import SweepState
from monkey.spec.job.lease_length import LEASE
from monkey.store.create import create_object
from monkey.store.memory import MemoryState, MemoryStore
from monkey.store.store_port import ListedObject
from tests.loops import Run
from tests.unit.monkey_agent.scheduling.test_polling import SleptClock
from tests.unit.protocol.sweeps.test_sweep_log import REVISION

KEYS = Keys("p")
SWEEP = SweepState("s", revision=replace(REVISION, settings=replace(REVISION.settings, max_concurrent_jobs=1)))


class CountedStore(MemoryStore):
    """Counts the listings of permits: each costs money in a bucket."""

    asked = 0

    async def list(self, prefix: str, after: str = "") -> list[ListedObject]:
        self.asked += prefix.startswith(KEYS.permit_log("s", 0))
        return await super().list(prefix, after)


class Agent:
    """One that asks for the sweep's only permit; those of one state and clock meet."""

    def __init__(self, name: str, state: MemoryState, clock: SleptClock) -> None:
        self.store, agent = CountedStore(state), f"f/{name}/b"
        self.heart = HeartbeatWriter(self.store, KEYS.beat(agent), clock)
        self.observer = HeartbeatObserver(self.store, KEYS, clock, agent)
        claims = Claims(self.store, create_object, self.heart, self.observer, clock)
        self.permits = Permits(self.store, KEYS, claims, self.heart, self.observer, random.Random(1))

    async def is_any_free(self) -> bool:
        """Ask as an agent does: it beats and looks before."""
        assert await self.heart.beat()
        await self.observer.look()
        return await self.permits.any_free(SWEEP)


def test_store_is_not_asked_for_a_permit_that_a_living_agent_lists(run: Run) -> None:
    async def ask() -> None:
        state, clock = MemoryState(), SleptClock()
        owner, other = Agent("owner", state, clock), Agent("other", state, clock)
        assert await owner.is_any_free() and await owner.permits.take(SWEEP)
        assert not await other.is_any_free() and other.store.asked == 1
        for agent in (owner, other):
            before = agent.store.asked
            assert await owner.heart.beat()
            assert not await agent.is_any_free()
            assert agent.store.asked == before, "what it knows says so"

    run(ask())


def test_permit_that_an_agent_keeps_is_given_up_where_it_may_no_longer_be_its_own(run: Run) -> None:
    async def ask() -> None:
        state, clock = MemoryState(), SleptClock()
        owner, other = Agent("owner", state, clock), Agent("other", state, clock)
        assert await owner.is_any_free()
        permit = await owner.permits.take(SWEEP)
        assert permit
        owner.permits.give("s", permit)
        clock.at += LEASE
        assert await owner.permits.take(SWEEP) is None, "it is out of touch"
        assert not owner.heart.held
        assert await owner.heart.beat()
        assert await other.is_any_free() and await other.permits.take(SWEEP)

    run(ask())


def test_permit_of_an_agent_that_is_gone_is_free(run: Run) -> None:
    async def ask(*, leaves: bool) -> None:
        state, clock = MemoryState(), SleptClock()
        owner, other = Agent("owner", state, clock), Agent("other", state, clock)
        assert await owner.is_any_free()
        permit = await owner.permits.take(SWEEP)
        assert permit and await owner.heart.beat()
        assert not await other.is_any_free()
        if leaves:
            owner.permits.give("s", permit)
            await owner.permits.release("s")
            assert await owner.heart.beat(left=True)
            assert await other.is_any_free()
        for _ in range(5):
            clock.at += LEASE / 3
            free = await other.is_any_free()
        assert free and await other.permits.take(SWEEP)

    run(ask(leaves=True))
    run(ask(leaves=False))
