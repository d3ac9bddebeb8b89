"""The machine that the agent runs on: its clock and its identity."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

#: A clock that only moves forward and counts the machine's sleep. On macOS that is what CLOCK_MONOTONIC_RAW does.
CLOCK: int = time.CLOCK_BOOTTIME if hasattr(time, "CLOCK_BOOTTIME") else getattr(time, "CLOCK_MONOTONIC_RAW", 1)


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
        await asyncio.sleep(seconds)


def boot_id() -> str:
    """Return what tells this boot of the machine from all others; "" where nothing does."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        pass
    if sys.platform != "darwin":
        return ""
    import subprocess

    try:
        return subprocess.run(["sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""
