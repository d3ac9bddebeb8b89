"""The machine that the agent runs on: its clock, its identity, and what it can carry."""

from __future__ import annotations

import asyncio
import math
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from monkey_agent.gpus import gpus

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


@dataclass(frozen=True)
class Capacity:
    """What jobs may use of this machine: what we ourselves may, not what it has."""

    cpus: float
    #: Bytes.
    memory: int
    #: As CUDA_VISIBLE_DEVICES names them.
    gpus: tuple[str, ...] = ()


def capacity() -> Capacity:
    """Find out what jobs may use: the least of the hardware, our affinity, and our cgroups' limits."""
    return Capacity(min(_affinity(), _quota()), min(_installed(), _memory_limit()), gpus())


def _affinity() -> float:
    if hasattr(os, "sched_getaffinity"):
        return float(len(os.sched_getaffinity(0)))
    return float(os.cpu_count() or 1)


def _installed() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _quota() -> float:
    """Return the CPUs that our cgroups allow (a limit on any level counts)."""
    limits = [math.inf]
    for directory in _cgroups(""):
        quota, _, period = _text(directory / "cpu.max").partition(" ")
        if quota.isdigit() and period.isdigit():
            limits.append(int(quota) / int(period))
    for directory in _cgroups("cpu"):
        old, period = _text(directory / "cpu.cfs_quota_us"), _text(directory / "cpu.cfs_period_us")
        if old.isdigit() and period.isdigit() and int(period):
            limits.append(int(old) / int(period))
    return max(min(limits), 0.01)


def _memory_limit() -> int:
    files = [directory / "memory.max" for directory in _cgroups("")]
    files += [directory / "memory.limit_in_bytes" for directory in _cgroups("memory")]
    return min((int(text) for file in files if (text := _text(file)).isdigit()), default=sys.maxsize)


def _cgroups(controller: str) -> list[Path]:
    """Return the directories of our cgroup and those above it: version 2 for "", else the controller of version 1."""
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            root = Path("/sys/fs/cgroup") / controller
            ours = root / path.lstrip("/")
            # In a container the path may be the host's, and what we see is mounted at the root.
            return [level for level in (ours, *ours.parents) if level.is_relative_to(root)]
    return []


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
