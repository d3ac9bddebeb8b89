"""When an agent on a bucket looks again: after its pause, or as soon as another agent was silent for its lease."""

from __future__ import annotations

import random

import pytest

from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.layout import Keys
from monkey.protocol.liveness.observer import HeartbeatObserver
from monkey.protocol.wakeup import LISTEN
from monkey.spec.job.lease_length import LEASE
from monkey.store.memory import MemoryStore
from monkey_agent.scheduling.polling import PollSchedule
from tests.loops import Run

KEYS = Keys("p")


class BucketOfTwo(MemoryStore):
    """A store in which looking costs money."""

    poll = 10.0


class SleptClock:
    """A clock that moves only where somebody sleeps."""

    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> float:
        return self.at

    def wall(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds


@pytest.mark.parametrize(
    ("seen", "looks", "full", "after"),
    [
        (LEASE - 5, True, False, (5, 6)),
        (LEASE - 5, True, True, (8, 12)),
        (LEASE + 5, False, False, (LISTEN, 2 * LISTEN)),
        (LEASE + 5, True, False, (8, 12)),
    ],
    ids=["one is nearly silent", "no slot is free", "the look failed", "it was looked at"],
)
def test_an_agent_with_a_free_slot_looks_as_soon_as_another_was_silent_for_its_lease(
    run: Run, seen: float, looks: bool, full: bool, after: tuple[float, float]
) -> None:
    async def rest() -> float:
        store, clock = BucketOfTwo(), SleptClock()
        observer = HeartbeatObserver(store, KEYS, clock, "f/me/b")
        schedule = PollSchedule(store, KEYS, clock, random.Random(1), observer)
        assert await HeartbeatWriter(store, KEYS.beat("f/other/b"), clock).beat()
        for pause in (30, 30, seen - 60):  # after a longer one it would forget what it observed
            await observer.look()
            clock.at += pause
        if looks:
            await observer.look()
        began = clock.at
        await schedule.rest(idle=False, shortly=None, full=lambda: full, every_second=bool)
        return clock.at - began

    assert after[0] <= run(rest()) <= after[1]
