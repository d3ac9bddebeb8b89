"""Whom an observer takes for dead, and what a last look at the heartbeat itself may tell."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise

from monkey.protocol.entries import Claim
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.layout import Keys
from monkey.protocol.liveness.observer import READS, HeartbeatObserver
from monkey.spec.job.lease_length import LEASE
from monkey.store.memory import MemoryStore

KEYS = Keys("p")
BASE = KEYS.job_log("0" * 16)
OWNER = "f/other/b"


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at

    def wall(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing here sleeps")


async def silent(store: MemoryStore, clock: Clock, beats: int) -> tuple[HeartbeatObserver, list[bytes]]:
    """Return an observer to which the owner's heartbeat has not moved for longer than LEASE, and all its beats."""
    heart = HeartbeatWriter(store, KEYS.beat(OWNER), clock)
    heart.held.add((BASE, 1))
    written = []
    for _ in range(beats):
        await heart.beat()
        written.append(await store.get(KEYS.beat(OWNER)))
    observer = HeartbeatObserver(store, KEYS, clock, "f/me/b")
    for _ in range(5):
        await observer.look()
        clock.at += LEASE / 3
    await observer.look()
    return observer, written


def test_a_heartbeat_that_moved_after_the_last_look_saves_the_claim() -> None:
    async def confirm(change: int | None) -> bool:
        store, clock = MemoryStore(), Clock()
        observer, beats = await silent(store, clock, 2)
        claim = Claim(OWNER, 1, 1, "s")
        assert observer.lost(claim, BASE, 1)
        if change is not None:
            await store.put(KEYS.beat(OWNER), beats[1].replace(b'"seq":2', f'"seq":{change}'.encode()))
        return await observer.confirm(claim, BASE, 1)

    assert asyncio.run(confirm(None)), "it did not move: the owner is dead"
    assert not asyncio.run(confirm(3)), "it moved"
    assert not asyncio.run(confirm(1)), "an older beat, written late, hides newer ones"


class Cached(MemoryStore):
    """Answers from a cache of long ago, as a mount with `nocto` does, unless it is asked for the newest."""

    held: bytes | None = None

    async def get(self, key: str) -> bytes:
        return self.held if self.held is not None else await super().get(key)

    async def get_newest(self, key: str) -> bytes:
        return await super().get(key)


def test_heartbeat_that_moved_behind_a_cache_saves_the_claim() -> None:
    async def confirm() -> bool:
        store, clock = Cached(), Clock()
        observer, beats = await silent(store, clock, 2)
        store.held = beats[1]
        await store.put(KEYS.beat(OWNER), beats[1].replace(b'"seq":2', b'"seq":3'))
        assert observer.lost(Claim(OWNER, 1, 1, "s"), BASE, 1)
        return await observer.confirm(Claim(OWNER, 1, 1, "s"), BASE, 1)

    assert not asyncio.run(confirm())


class Counted(MemoryStore):
    """Notes what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: Counter[str] = Counter()

    async def get(self, key: str) -> bytes:
        self.read[key] += 1
        return await super().get(key)


class Fleet:
    """Agents that beat, each at its own moments, and one that looks."""

    def __init__(self, count: int, every: float = 13.0) -> None:
        self.store, self.clock, self.every = Counted(), Clock(), every
        self.agents = [f"f/a{i}/b" for i in range(count)]
        self.hearts = {agent: HeartbeatWriter(self.store, KEYS.beat(agent), self.clock) for agent in self.agents}
        self.due = {agent: every * i / count for i, agent in enumerate(self.agents)}
        self.observer = HeartbeatObserver(self.store, KEYS, self.clock, self.agents[0])

    async def look_after(self, seconds: float) -> set[str]:
        """Let time pass, and return whose heartbeats a look then reads."""
        self.clock.at += seconds
        for agent, due in self.due.items():
            while self.due[agent] <= self.clock.at:
                await self.hearts[agent].beat()
                self.due[agent] += self.every
            assert due <= self.due[agent]
        self.store.read.clear()
        await self.observer.look()
        assert set(self.store.read.values()) <= {1}
        return {agent for agent in self.agents if KEYS.beat(agent) in self.store.read}


def test_of_forty_agents_few_are_read_at_a_look_and_all_in_a_while() -> None:
    async def reads(every: float) -> None:
        fleet = Fleet(40, every)
        others = set(fleet.agents[1:])
        assert await fleet.look_after(20) == others, "what is new is read at once"
        looks = [await fleet.look_after(10) for _ in range(60)]
        assert max(map(len, looks)) == READS // 4
        for agent in others:
            read_at = [-1, *(i for i, look in enumerate(looks) if agent in look), len(looks)]
            assert max(later - earlier for earlier, later in pairwise(read_at)) <= 14

    for every in (1.0, 9.0, 13.0, 15.0):
        asyncio.run(reads(every))


def test_of_a_small_fleet_all_that_moved_are_read_at_each_look() -> None:
    async def reads() -> None:
        fleet = Fleet(READS + 1, 9.0)
        for _ in range(20):
            assert await fleet.look_after(10) == set(fleet.agents[1:])
        assert fleet.observer.living == READS
        fleet.due = dict.fromkeys(fleet.agents, float("inf"))
        for _ in range(11):
            await fleet.look_after(10)
        assert fleet.observer.living == 0, "none of them moved for longer than a lease"

    asyncio.run(reads())


def test_an_owner_is_read_as_often_as_its_heartbeat_moves_and_is_known_to_be_dead_as_soon() -> None:
    async def owner() -> None:
        fleet = Fleet(40, 9.0)
        fleet.observer.reads = 0
        who, claim = fleet.agents[7], Claim(fleet.agents[7], 1, 99, "s")
        await fleet.look_after(20)
        for _ in range(20):
            assert not fleet.observer.lost(claim, BASE, 1)
            assert await fleet.look_after(10) == {who}
        fleet.due[who] = float("inf")
        died, looks = fleet.clock.at, 0
        while not (fleet.observer.lost(claim, BASE, 1) and await fleet.observer.confirm(claim, BASE, 1)):
            assert not await fleet.look_after(10)
            looks += 1
        assert LEASE < fleet.clock.at - died <= LEASE + 10

    asyncio.run(owner())


def test_a_heartbeat_that_moves_unread_is_a_sign_of_life_and_one_that_stands_still_is_read() -> None:
    async def unread() -> None:
        fleet = Fleet(40, 9.0)
        who, claim = fleet.agents[7], Claim(fleet.agents[7], 1, 99, "s")
        fleet.observer.reads = 0
        await fleet.look_after(20)
        for _ in range(20):
            assert not await fleet.look_after(10)
        assert not fleet.observer.lost(claim, BASE, 1), "unread for more than LEASE, and alive"
        assert await fleet.look_after(10) == {who}
        assert not await fleet.look_after(10)
        fleet.due[who] = float("inf")
        fleet.observer.reads = 1
        looks = [await fleet.look_after(10) for _ in range(3)]
        assert {who} in looks, "it does not wait for its turn among forty"

    asyncio.run(unread())
