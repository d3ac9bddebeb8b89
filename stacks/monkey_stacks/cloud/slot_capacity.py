"""How many jobs machines of a cloud run at once, how many machines that makes, and what none of them can run. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from monkey.fleet.machine_capacity import format_count
from monkey.spec.job.counted_resources import CountedResources
from monkey.spec.job.recipe import JobResources

#: Of the memory that a cloud rents out, what its machines say that they have: the rest is the kernel's and firmware's.
_MEMORY_SHARE = 0.94
#: What jobs ask for, each with the number of jobs that do: as `Work.asked`.
Asked = Sequence[tuple[JobResources, int]]


@dataclass(frozen=True)
class MachineType:
    """A type of machines, by what its cloud says of it."""

    type: str
    cpus: float
    #: Bytes, as they are rented out.
    memory: int
    gpus: int = 0
    #: "x86_64" or "arm64".
    arch: str = "x86_64"
    #: Of `memory`, what its machines say that they have.
    share: float = _MEMORY_SHARE

    def room(self, asked: JobResources) -> int:
        """Return how many such jobs fit on it at once."""
        fits = [self.cpus / asked.bound_cpus(self.cpus) if asked.cpus else math.inf]
        # A job has a part of one GPU, never parts of two.
        fits += [self.gpus * (int(1 / asked.gpus + 1e-9) if asked.gpus < 1 else 1 / asked.gpus)] if asked.gpus else []
        fits += [self.memory * self.share / asked.memory] if asked.memory else []
        # Jobs that take next to nothing: agents run no more of them than this at once either.
        return int(min(1024.0, *fits) + 1e-9)


def count_needed_machines(
    types: Sequence[MachineType],
    jobs: int,
    asked: Asked,
    max_slots: int | None,
    counted: CountedResources = (),
) -> int:
    """Return how many machines have room for all these jobs at once, where each is of the smallest type that can.

    Each has what is `counted`. Jobs that take more of that are for other providers.
    """
    if not jobs:
        return 0
    has, taken = dict(counted), 0.0
    for each, count in asked or [(JobResources(), jobs)]:
        limits = [has.get(name, 0) // amount for name, amount in each.counted]
        limits += [max_slots] if max_slots is not None else []
        if all(limits):
            taken += count / _slots(types, each, min(limits, default=None))
    return math.ceil(taken - 1e-9)


def _slots(types: Sequence[MachineType], asked: JobResources, max_slots: int | None) -> int:
    """Return how many such jobs run on a machine at once; 1 where none can, which is reported elsewhere."""
    fitting = [room for type_ in types if (room := type_.room(asked))]
    slots = min(fitting, default=1)
    return min(slots, max_slots) if max_slots is not None else slots


def describe_type_shortage(types: Sequence[MachineType], asked: JobResources) -> str:
    """Say of what each type has less than a job asks for; "" where one has enough."""
    short = [_short(type_, asked) for type_ in types]
    return "; ".join(short) if all(short) else ""


def describe_misfits(types: Sequence[MachineType], asked: Asked, *, in_order: bool) -> list[str]:
    """Return what to say of types that cannot run what others can: machines of them would come for nothing.

    `in_order`: the first type is taken as long as the cloud has it.
    """
    said = []
    for each, _ in asked:
        short = [_short(type_, each) for type_ in types]
        if not all(short):
            said += [f"warning: some machines may come for nothing, for a job asks for {of}" for of in short if of]
    if in_order and said and not any(types[0].room(each) for each, _ in asked):
        able = next(type_ for type_ in types if any(type_.room(each) for each, _ in asked))
        first = f"on demand the first of the types is taken, and {types[0].type} can run none of the jobs"
        return [f"warning: {first}: write {able.type} before it"]
    return list(dict.fromkeys(said))


def _short(machine: MachineType, asked: JobResources) -> str:
    has, memory = f"({machine.type} has {{}})", machine.memory * machine.share
    short = []
    if asked.bound_cpus(machine.cpus) > machine.cpus:
        short.append(f"{format_count(asked.cpus, 'CPU')} {has.format(f'{machine.cpus:g}')}")
    if asked.memory > memory:
        short.append(f"{asked.memory / 2**30:.1f} GiB of memory {has.format(f'about {memory / 2**30:.1f}')}")
    if asked.gpus > machine.gpus:
        short.append(f"{format_count(asked.gpus, 'GPU')} {has.format(machine.gpus)}")
    return ", ".join(short)
