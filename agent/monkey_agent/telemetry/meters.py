"""The ports of the meters: what a job uses, and the state of its machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol


class ProcessUsage(NamedTuple):
    """What the processes of a job have used so far, and hold now."""

    cpu_seconds: float
    memory_bytes: int
    disk_read_bytes: int
    disk_write_bytes: int


class JobMeter(Protocol):
    """Reads what jobs use."""

    def read(self, supervisor: int, mains: Mapping[int, int]) -> dict[int, ProcessUsage]:
        """Return what each job uses; `mains`: key to the first process. A job without processes is left out."""


class Meter(Protocol):
    """Reads a machine's state."""

    def read(self) -> dict[str, float]:
        """Return what is known: percents as they are now, bytes counted since the boot. Raises OSError."""


def measure_disk_fill(place: Path) -> dict[str, float]:
    """Return how full the disk is, as `df` has it: what only root may take is not there."""
    found = os.statvfs(place)
    used = found.f_blocks - found.f_bfree
    return {"disk_used_percent": round(100 * used / max(1, used + found.f_bavail), 2)}
