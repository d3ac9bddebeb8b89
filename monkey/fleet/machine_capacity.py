"""What a machine can carry: what agents pack, and what a plan warns of before.

An engine that gives us a part of a machine may not confine us to it. Then variables alone say how much is ours: those
of Slurm, or MONKEY_CPUS and MONKEY_MEMORY.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from monkey.errors import MachineUnfit
from monkey.fleet.gpus import list_gpus
from monkey.plan.sizes import format_size
from monkey.spec.job.counted_resources import CountedResources
from monkey.spec.job.recipe import JobResources, make_amounts
from monkey.spec.yaml.mistakes import MistakesError
from monkey.spec.yaml.units import parse_size

#: Variables that bound what is ours of this machine: a number of CPUs ("0.5"), and a size ("32GiB", or in bytes).
CPUS_VARIABLE, MEMORY_VARIABLE = "MONKEY_CPUS", "MONKEY_MEMORY"


#: Who ends a job that takes more memory than it asked for: the kernel, monkey, which looks at jobs, or nothing.
MEMORY_BY_KERNEL, MEMORY_BY_LOOKS, MEMORY_NOT_HELD = "kernel", "looks", "nothing"
_MEMORY_NOTES = {
    MEMORY_BY_KERNEL: "the kernel ends a job that takes more than it asked for",
    MEMORY_BY_LOOKS: "monkey looks at jobs, and ends one a moment after it took more than it asked for",
    MEMORY_NOT_HELD: "nothing ends a job that takes more than it asked for",
}


@dataclass(frozen=True)
class Capacity:
    """What jobs may use of this machine: what we ourselves may, not what it has."""

    cpus: float
    #: Bytes.
    memory: int
    #: As CUDA_VISIBLE_DEVICES names them.
    gpus: tuple[str, ...] = ()
    #: Nothing here knows of them: the provider says how many there are.
    counted: CountedResources = ()

    @property
    def amounts(self) -> dict[str, int]:
        """Return all but the GPUs; see `JobResources.amounts`."""
        return make_amounts(self.cpus, self.memory, self.counted)


def describe_shortage(asked: JobResources) -> str:
    """Say of what this machine has less than a job asks for: "64 CPUs (it has 2)"; "" where it has enough."""
    if asked == JobResources():
        return ""
    short = []
    cpus, memory = _cpus(), _memory()
    if round(asked.bound_cpus(cpus) * 1000) > round(cpus * 1000):
        short.append(f"{format_count(asked.cpus, 'CPU')} (it has {cpus:g})")
    if asked.memory > memory:
        short.append(f"{format_size(asked.memory)} of memory (it has {format_size(memory)})")
    if asked.gpus and asked.gpus > (there := len(list_gpus())):
        short.append(f"{format_count(asked.gpus, 'GPU')} (it has {there})")
    return ", ".join(short)


def describe_memory_limits(asked: Iterable[tuple[JobResources, int]], held: Mapping[str, str]) -> list[str]:
    """Say how machines hold the memory that jobs ask for; nothing where none asks for any.

    `held`: machines, or a word for all of them, to `MEMORY_BY_KERNEL` and its like.
    """
    if not any(each.memory for each, _ in asked):
        return []
    names = {how: ", ".join(name for name, of in held.items() if of == how) for how in _MEMORY_NOTES}
    return [f"memory: {told} ({names[how]})" for how, told in _MEMORY_NOTES.items() if names[how]]


def format_count(number: float, noun: str) -> str:
    """Return "1 GPU", "0.5 CPUs", "0 GPUs"."""
    return f"{number:g} {noun}{'s' * (number != 1)}"


def format_resources(need: JobResources) -> str:
    """Return what a job asks for, as "2 CPUs, 1 GPU, 4.0 GiB of memory, 1 tpu"."""
    asked = [format_count(need.cpus, "CPU"), format_count(need.gpus, "GPU"), f"{need.memory / 2**30:.1f} GiB of memory"]
    told = [word for word, amount in zip(asked, (need.cpus, need.gpus, need.memory), strict=True) if amount]
    return ", ".join([*told, *(f"{count} {name}" for name, count in need.counted)])


def measure_capacity() -> Capacity:
    """Find out what jobs may use: the least of the hardware, our affinity, our cgroups' limits, and our allocation.

    Raises MachineUnfit where a variable that bounds it has no number.
    """
    return Capacity(_cpus(), _memory(), list_gpus())


def _cpus() -> float:
    return min(_affinity(), _quota(), read_allocated_cpus(os.environ))


def _memory() -> int:
    return min(_installed(), _memory_limit(), read_allocated_memory(os.environ))


def read_allocated_cpus(environ: Mapping[str, str]) -> float:
    """Return the CPUs that an engine gave us here, infinity where none says. Raises MachineUnfit."""
    found = [math.inf]
    for name in (CPUS_VARIABLE, "SLURM_CPUS_ON_NODE"):
        if text := environ.get(name, ""):
            found.append(_number(name, text))
    return min(found)


def read_allocated_memory(environ: Mapping[str, str]) -> int:
    """Return the bytes that an engine gave us here, `sys.maxsize` where none says. Raises MachineUnfit."""
    found = [sys.maxsize]
    if text := environ.get(MEMORY_VARIABLE, ""):
        try:
            found.append(parse_size(int(text) if text.isdigit() else text))
        except MistakesError as exc:
            raise MachineUnfit(f"{MEMORY_VARIABLE}: {exc.mistakes[0].message}", hint=exc.mistakes[0].hint) from exc
    # Mebibytes; 0 stands for all that the node has.
    if node := environ.get("SLURM_MEM_PER_NODE", ""):
        found.append(int(_number("SLURM_MEM_PER_NODE", node) * 2**20))
    elif (each := environ.get("SLURM_MEM_PER_CPU", "")) and (cpus := environ.get("SLURM_CPUS_ON_NODE", "")):
        found.append(int(_number("SLURM_MEM_PER_CPU", each) * _number("SLURM_CPUS_ON_NODE", cpus) * 2**20))
    return min(size for size in found if size)


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9 or (name == CPUS_VARIABLE and not number):
        raise MachineUnfit(f"{name}: expected a number, found {text!r}", hint=f"set {name} to a number, or unset it")
    return number


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
