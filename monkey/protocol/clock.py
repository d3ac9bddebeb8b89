"""The clock that the protocol runs on: the machine's in earnest, a virtual one in the simulation."""

from __future__ import annotations

import time
from typing import Protocol

#: A clock that only moves forward and counts the machine's sleep. On macOS that is what CLOCK_MONOTONIC_RAW does.
CLOCK: int = time.CLOCK_BOOTTIME if hasattr(time, "CLOCK_BOOTTIME") else getattr(time, "CLOCK_MONOTONIC_RAW", 1)


class Clock(Protocol):
    """Time on one machine."""

    def now(self) -> float:
        """Return seconds on a clock that only moves forward and counts the machine's sleep (CLOCK_BOOTTIME)."""

    def wall(self) -> float:
        """Return seconds since the epoch; for people, and for when sweeps expire: nothing else is decided by it."""

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""


class MachineClock:
    """The real `Clock`."""

    def now(self) -> float:
        """See `Clock.now`."""
        return time.clock_gettime(CLOCK)

    def wall(self) -> float:
        """See `Clock.wall`."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        import asyncio  # not where a clock alone is wanted: commands that answer at once load no event loop

        await asyncio.sleep(seconds)
