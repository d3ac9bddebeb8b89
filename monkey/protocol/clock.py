"""The clock that the protocol runs on: the machine's in earnest, a virtual one in the simulation."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Time on one machine."""

    def now(self) -> float:
        """Return seconds on a clock that only moves forward and counts the machine's sleep (CLOCK_BOOTTIME)."""

    def wall(self) -> float:
        """Return seconds since the epoch; for people, never for decisions."""

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
