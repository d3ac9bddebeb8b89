"""Room on the machine's disk: without any, jobs would come only to fail, one after the other, all that are queued."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from monkey.plan.sizes import format_size

#: Bytes that must be free for a job to begin, or this part of the disk where that is less.
_LEAST, _PART = 64 << 20, 0.01
#: Seconds without a job after one found no room, though there seemed to be some: it needs more than others.
PAUSE = 60.0


class DiskSpaceGuard:
    """Whether there is room for another job in some directories."""

    def __init__(self, places: Sequence[Path], now: Callable[[], float] = time.monotonic) -> None:
        """Look at the disks of `places`, which may not be there yet."""
        self._places, self._now = places, now
        self._until = float("-inf")

    def note(self, exc: OSError) -> None:
        """Take note of why a job could not be prepared."""
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            self._until = self._now() + PAUSE

    @property
    def lacking(self) -> str:
        """What hinders jobs now, in words; "" for nothing."""
        for place in self._places:
            disk = _disk(place)
            if disk is None:
                continue  # a job will say what is wrong there
            least = min(_LEAST, _PART * disk.f_blocks * disk.f_frsize)
            free = disk.f_bavail * disk.f_frsize
            if free < least:
                needed = format_size(least)
                return f"the disk is full: {format_size(free)} free at {place}, no job begins until {needed} are"
        if self._now() < self._until:
            return f"the disk was full when a job was prepared: no other begins for {PAUSE:.0f} s"
        return ""


def _disk(place: Path) -> os.statvfs_result | None:
    """Return how full the disk is that `place` is on, or will be."""
    for path in (place, *place.parents):
        try:
            return os.statvfs(path)
        except FileNotFoundError:
            continue
        except OSError:
            break
    return None
