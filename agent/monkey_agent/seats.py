"""The machine's capacity, packed: how many attempts may run at once, and which GPUs each has."""

from __future__ import annotations

from monkey.fleet.capacity import Capacity
from monkey.spec.recipe import Resources
from monkey_agent.ports import Seat


class MachineSeats:
    """Hands out seats until CPUs, GPUs or memory are used up, or `max_slots` attempts run."""

    def __init__(self, capacity: Capacity, max_slots: int | None = None) -> None:
        """Pack `capacity`; None for as many seats as it has room for."""
        self.capacity, self.max_slots = capacity, max_slots
        #: Thousandths: sums of 0.1 must come out even.
        self._cpus = _milli(capacity.cpus)
        self._memory = capacity.memory
        self._gpus = list(capacity.gpus)
        self._taken = 0

    def take(self, resources: Resources) -> Seat | None:
        """Return a seat, or None when none is free now."""
        if self.max_slots is not None and self._taken >= self.max_slots:
            return None
        if _milli(resources.cpus) > self._cpus or resources.memory > self._memory or resources.gpus > len(self._gpus):
            return None
        self._taken += 1
        self._cpus -= _milli(resources.cpus)
        self._memory -= resources.memory
        mine, self._gpus = self._gpus[: resources.gpus], self._gpus[resources.gpus :]
        return Seat(resources.cpus, tuple(mine), resources.memory)

    def give(self, seat: Seat) -> None:
        """Give a seat back."""
        self._taken -= 1
        self._cpus += _milli(seat.cpus)
        self._memory += seat.memory
        free = {*self._gpus, *seat.gpus}
        self._gpus = [gpu for gpu in self.capacity.gpus if gpu in free]

    def fits(self, resources: Resources) -> bool:
        """Could the machine ever have such a seat?"""
        return (
            _milli(resources.cpus) <= _milli(self.capacity.cpus)
            and resources.memory <= self.capacity.memory
            and resources.gpus <= len(self.capacity.gpus)
            and self.max_slots != 0
        )


def _milli(cpus: float) -> int:
    return round(cpus * 1000)
