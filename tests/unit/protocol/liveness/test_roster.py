"""The roster of a large fleet: who makes it, what is believed of it, and what it saves."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections import Counter

import pytest

from monkey.errors import CorruptObject
from monkey.protocol.entries import Claim
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.layout import Keys
from monkey.protocol.liveness.observer import HeartbeatObserver
from monkey.protocol.liveness.roster import FRESH, SHARE, decode_roster
from monkey.spec.job.lease_length import LEASE
from monkey.store.memory import MemoryStore
from monkey.store.store_port import ListedObject

KEYS = Keys("p")
BASE = KEYS.job_log("0" * 16)


class SetClock:
    """A clock that is set, and that started at some time of its own."""

    def __init__(self, world: World, shift: float) -> None:
        self._world, self._shift = world, shift

    def now(self) -> float:
        return self._world.at + self._shift

    def wall(self) -> float:
        return self.now()

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing here sleeps")


class Bucket(MemoryStore):
    """A store that costs money; it notes what is asked of it."""

    poll = 10.0

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    async def get(self, key: str) -> bytes:
        self.asked["roster" if key == KEYS.roster else "beat"] += 1
        return await super().get(key)

    async def put(self, key: str, data: bytes) -> None:
        self.asked["share"] += key == KEYS.roster
        await super().put(key, data)

    async def list(self, prefix: str, after: str = "") -> list[ListedObject]:
        self.asked["list"] += 1
        return await super().list(prefix, after)


class World:
    """A fleet in which all beat and look by turns; agents can die."""

    def __init__(self, count: int) -> None:
        self.at, self.store = 0.0, Bucket()
        self.names = [f"f/a{i:02}/b" for i in range(count)]
        self.clocks = {name: SetClock(self, 1000.0 * i) for i, name in enumerate(self.names)}
        self.hearts = {name: HeartbeatWriter(self.store, KEYS.beat(name), self.clocks[name]) for name in self.names}
        self.observers = {name: HeartbeatObserver(self.store, KEYS, self.clocks[name], name) for name in self.names}
        self.due = {name: float(i % 10) for i, name in enumerate(self.names)}
        self.dead: set[str] = set()
        for observer in self.observers.values():
            observer.crowd = 3

    async def pass_seconds(self, seconds: float) -> None:
        """Let time pass: each agent beats every 14 seconds, and looks every ten, the author every two."""
        until = self.at + seconds
        while self.at < until:
            self.at += 1
            for i, name in enumerate(self.names):
                if name in self.dead:
                    continue
                if (self.at + i) % 14 == 0 or self.at == 1:
                    assert await self.hearts[name].beat()
                if self.at >= self.due[name]:
                    await self.observers[name].look()
                    self.due[name] = self.at + (SHARE if self.observers[name].leads else 10)

    @property
    def authors(self) -> list[str]:
        return [name for name in self.names if name not in self.dead and self.observers[name].leads]

    async def takes(self, taker: str, owner: str) -> bool:
        """Would it take a job over that the owner claimed?"""
        claim, observer = Claim(owner, 1, 10**9, "s"), self.observers[taker]
        return observer.lost(claim, BASE, 1) and await observer.confirm(claim, BASE, 1)


def test_one_agent_lists_for_all_and_another_takes_its_place() -> None:
    async def share() -> None:
        world = World(8)
        await world.pass_seconds(60)
        (first,) = world.authors
        world.store.asked.clear()
        await world.pass_seconds(60)
        assert world.store.asked["list"] == world.store.asked["share"] == 30, "the author's looks alone"
        assert world.store.asked["roster"] == 30 + 7 * 6
        world.dead.add(first)
        await world.pass_seconds(60)
        (second,) = world.authors
        world.store.asked.clear()
        await world.pass_seconds(60)
        assert world.store.asked["list"] == 30
        world.dead.clear()
        await world.pass_seconds(60)
        assert world.authors == [second], "who comes back leaves it its place"

    asyncio.run(share())


def test_author_that_dies_with_all_whose_names_are_like_its_own_is_replaced_soon() -> None:
    async def share() -> None:
        world = World(24)
        await world.pass_seconds(60)
        (first,) = world.authors
        world.dead |= {first, *world.names[:12]}
        await world.pass_seconds(30)
        assert len(world.authors) == 1, "twelve turns would take 48 seconds"

    asyncio.run(share())


def test_owner_is_known_to_be_dead_as_soon_as_by_own_listings_and_by_who_met_its_claim_just_now() -> None:
    async def take() -> None:
        world = World(8)
        await world.pass_seconds(60)
        _, owner, waiting, busy = world.names[:4]
        world.dead.add(owner)
        died = world.at
        while not await world.takes(waiting, owner):
            await world.pass_seconds(1)
            assert not await world.takes(waiting, world.names[0])
        assert LEASE - 14 < world.at - died <= LEASE + FRESH + 10
        await world.pass_seconds(10)
        assert await world.takes(busy, owner), "it has not met that owner before"
        assert not any([await world.takes(busy, name) for name in world.names if name not in (owner, busy)])

    asyncio.run(take())


def test_silent_agents_last_heartbeat_is_read_by_all_who_follow_the_roster() -> None:
    async def read() -> None:
        world = World(40)
        await world.pass_seconds(60)
        owner, follower = world.names[9], world.observers[world.names[5]]
        world.hearts[owner].held.add((BASE, 1))
        follower.reads = 0  # of heartbeats that it need not know
        assert await world.hearts[owner].beat()
        world.dead.add(owner)
        await world.pass_seconds(LEASE - 20)
        assert not follower.find_silent() and not follower.beats[owner].held
        await world.pass_seconds(40)
        assert follower.find_silent() == {owner} and follower.beats[owner].held == {(BASE, 1)}

    asyncio.run(read())


def test_heartbeat_that_is_newer_than_the_roster_saves_the_claim() -> None:
    async def confirm() -> None:
        world = World(8)
        await world.pass_seconds(60)
        owner, taker = world.names[1], world.names[2]
        world.dead.add(owner)
        await world.pass_seconds(LEASE + 20)
        late = await world.store.get(KEYS.beat(owner))
        assert await world.hearts[owner].beat()
        assert not await world.takes(taker, owner), "it beat after the last listing"
        await world.pass_seconds(20)
        assert await world.hearts[owner].beat()
        await world.pass_seconds(20)
        await world.store.put(KEYS.beat(owner), late)
        await world.pass_seconds(LEASE - 20)
        assert not await world.takes(taker, owner), "an older one, written late, hides it"

    asyncio.run(confirm())


def test_agents_learn_of_segments_from_the_roster_and_read_few_heartbeats() -> None:
    async def read() -> None:
        world = World(40)
        await world.pass_seconds(60)
        follower = world.observers[world.names[5]]
        key = KEYS.segment(world.names[9], 1)
        await world.store.create(key, b'{"jobs":')
        await world.pass_seconds(15)
        assert key in follower.corrupt, "it was read"
        world.store.asked.clear()
        await follower.look()
        assert world.store.asked["beat"] <= 2 and not world.store.asked["list"]

    asyncio.run(read())


def test_small_fleet_has_no_roster() -> None:
    async def share() -> None:
        world = World(4)
        await world.pass_seconds(60)
        assert not world.authors and not world.store.asked["roster"] and not world.store.asked["share"]

    asyncio.run(share())


@pytest.mark.parametrize(
    "body",
    [
        {"author": 1},
        {"objects": {"../x": {}}},
        {"objects": {"f/a/b": {"beat": 1}}},
        {"silence": {"f/a/b": [1]}},
        {"silence": {"f/a/b": [1, -5]}},
        {"silence": {"f/a/b": [1.5, 5]}},
        {"clock": float("nan")},
        {"more": 1},
    ],
)
def test_misshapen_roster_is_none(body: dict[str, object]) -> None:
    whole = {"author": "f/a/b", "clock": 1.0, "objects": {"f/a/b": {"beat": "x"}}, "silence": {"f/a/b": [3, 2.5]}}
    assert decode_roster("k", zlib.compress(json.dumps(whole).encode())).silence == {"f/a/b": (3, 2.5)}
    with pytest.raises(CorruptObject, match="not a roster"):
        decode_roster("k", zlib.compress(json.dumps({**whole, **body}).encode()))


@pytest.mark.parametrize("data", [b"", b"{}", zlib.compress(b"[]"), zlib.compress(b"0" * (65 * 1024 * 1024))[:-9]])
def test_bytes_that_are_no_roster_are_reported(data: bytes) -> None:
    with pytest.raises(CorruptObject, match="not a roster"):
        decode_roster("k", data)
