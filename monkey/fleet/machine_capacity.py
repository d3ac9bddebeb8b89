"""What a machine can carry: what agents pack, and what a plan warns of before."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from monkey.fleet.gpus import list_gpus
from monkey.spec.job.recipe import JobResources


@dataclass(frozen=True)
class Capacity:
    """What jobs may use of this machine: what we ourselves may, not what it has."""

    cpus: float
    #: Bytes.
    memory: int
    #: As CUDA_VISIBLE_DEVICES names them.
    gpus: tuple[str, ...] = ()


def describe_shortage(asked: JobResources) -> str:
    """Say of what this machine has less than a job asks for: "64 CPUs (it has 2)"; "" where it has enough."""
    if asked == JobResources():
        return ""
    short = []
    cpus, memory = min(_affinity(), _quota()), min(_installed(), _memory_limit())
    if round(asked.cpus * 1000) > round(cpus * 1000):
        short.append(f"{format_count(asked.cpus, 'CPU')} (it has {cpus:g})")
    if asked.memory > memory:
        short.append(f"{asked.memory / 2**30:.1f} GiB of memory (it has {memory / 2**30:.1f})")
    if asked.gpus and asked.gpus > (there := len(list_gpus())):
        short.append(f"{format_count(asked.gpus, 'GPU')} (it has {there})")
    return ", ".join(short)


def format_count(number: float, noun: str) -> str:
    """Return "1 GPU", "0.5 CPUs", "0 GPUs"."""
    return f"{number:g} {noun}{'s' * (number != 1)}"


def measure_capacity() -> Capacity:
    """Find out what jobs may use: the least of the hardware, our affinity, and our cgroups' limits."""
    return Capacity(min(_affinity(), _quota()), min(_installed(), _memory_limit()), list_gpus())


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


def measure_memory() -> tuple[int, int]:
    """Return the bytes in use, and of how many: the machine's, or those of a cgroup of ours that may have fewer.

    What the kernel can drop at once (caches of files) is not in use. (0, 0) where there is no /proc.
    """
    told = dict(line.split(":") for line in _text(Path("/proc/meminfo")).splitlines())
    if not told:
        return 0, 0
    total = _kibibytes(told["MemTotal"])
    found = [(total - _kibibytes(told["MemAvailable"]), total)]
    names = (
        ("", "memory.max", "memory.current", "inactive_file"),
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    )
    for controller, limit, usage, cache in names:
        for directory in _cgroups(controller):
            most, used = _text(directory / limit), _text(directory / usage)
            if most.isdigit() and used.isdigit():
                stat = dict(line.split() for line in _text(directory / "memory.stat").splitlines())
                found.append((max(0, int(used) - int(stat.get(cache, 0))), int(most)))
    return min(found, key=lambda one: one[1])


def _kibibytes(told: str) -> int:
    return int(told.split()[0]) * 1024


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
