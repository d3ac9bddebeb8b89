"""Whom an observer takes for dead, and what a last look at the heartbeat itself may tell."""

from __future__ import annotations

import asyncio

from monkey.protocol.entries import Claim
from monkey.protocol.heartbeat import TAKE, Heart
from monkey.protocol.keys import Keys
from monkey.protocol.observer import Observer
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


async def silent(store: MemoryStore, clock: Clock, beats: int) -> tuple[Observer, list[bytes]]:
    """Return an observer to which the owner's heartbeat has not moved for longer than TAKE, and all its beats."""
    heart = Heart(store, KEYS.beat(OWNER), clock)
    heart.held.add((BASE, 1))
    written = []
    for _ in range(beats):
        await heart.beat()
        written.append(await store.get(KEYS.beat(OWNER)))
    observer = Observer(store, KEYS, clock, "f/me/b")
    for _ in range(5):
        await observer.look()
        clock.at += TAKE / 3
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
