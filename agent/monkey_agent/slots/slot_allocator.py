"""The machine's capacity, packed: how many attempts may run at once, and which GPUs each has."""

from __future__ import annotations

from pathlib import Path

from monkey.fleet.machine_capacity import Capacity
from monkey.spec.job.recipe import JobResources
from monkey_agent.ports import Slot
from monkey_agent.slots.busy_gpus import BusyGpus
from monkey_agent.slots.disk_space import DiskSpaceGuard
from monkey_agent.slots.shared_machine import SharedMachine, TakenResources, write_slots


class SlotAllocator:
    """Hands out slots until CPUs, GPUs or memory are used up, or `max_slots` attempts run."""

    def __init__(
        self,
        capacity: Capacity,
        max_slots: int | None = None,
        neighbours: SharedMachine | None = None,
        directory: Path | None = None,
        foreign: BusyGpus | None = None,
        room: DiskSpaceGuard | None = None,
    ) -> None:
        """Pack `capacity`; `max_slots`: None for as many slots as it has room for.

        What the `neighbours` have is not handed out, nor are GPUs on which `foreign` processes compute. What we hand
        out is written into `directory`, for others like us. Nothing is handed out while there is no `room`.
        """
        self._foreign, self._room = foreign, room
        self.capacity, self.max_slots = capacity, max_slots
        self._neighbours, self._directory = neighbours or SharedMachine([]), directory
        #: Thousandths: sums of 0.1 must come out even.
        self._cpus = _milli(capacity.cpus)
        self._memory = capacity.memory
        self._gpus = list(capacity.gpus)
        self._taken = 0

    @property
    def lacking(self) -> str:
        """See `SlotPort.lacking`."""
        return self._room.lacking if self._room else ""

    def take(self, resources: JobResources) -> Slot | None:
        """Return a slot, or None when none is free now."""
        if self.lacking:
            return None
        theirs = self._neighbours.taken()
        if self.max_slots is not None and self._taken + theirs.slots >= self.max_slots:
            return None
        used = self._foreign.busy() if self._foreign is not None and resources.gpus else frozenset()
        if used is None:
            return None  # asked now; we are called again
        free = [gpu for gpu in self._gpus if gpu not in theirs.gpus and gpu not in used]
        if _milli(resources.cpus) > self._cpus - theirs.cpus or resources.memory > self._memory - theirs.memory:
            return None
        if resources.gpus > len(free):
            return None
        self._taken += 1
        self._cpus -= _milli(resources.cpus)
        self._memory -= resources.memory
        mine = free[: resources.gpus]
        self._gpus = [gpu for gpu in self._gpus if gpu not in mine]
        self._tell()
        return Slot(resources.cpus, tuple(mine), resources.memory)

    def give(self, slot: Slot) -> None:
        """Give a slot back."""
        self._taken -= 1
        self._cpus += _milli(slot.cpus)
        self._memory += slot.memory
        free = {*self._gpus, *slot.gpus}
        self._gpus = [gpu for gpu in self.capacity.gpus if gpu in free]
        self._tell()

    def _tell(self) -> None:
        if self._directory is not None:
            cpus, memory = _milli(self.capacity.cpus) - self._cpus, self.capacity.memory - self._memory
            gpus = tuple(gpu for gpu in self.capacity.gpus if gpu not in self._gpus)
            write_slots(self._directory, TakenResources(self._taken, cpus, memory, gpus))

    def fits(self, resources: JobResources) -> bool:
        """Could the machine ever have such a slot?"""
        return (
            _milli(resources.cpus) <= _milli(self.capacity.cpus)
            and resources.memory <= self.capacity.memory
            and resources.gpus <= len(self.capacity.gpus)
            and self.max_slots != 0
        )


def _milli(cpus: float) -> int:
    return round(cpus * 1000)
