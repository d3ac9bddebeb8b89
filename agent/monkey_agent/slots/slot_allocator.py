"""The machine's capacity, packed: how many attempts may run at once, and which GPUs each has."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from monkey.fleet.machine_capacity import Capacity
from monkey.spec.job.recipe import JobResources, make_amounts
from monkey_agent.ports import Slot
from monkey_agent.slots.busy_gpus import BusyGpus
from monkey_agent.slots.held_up_jobs import describe_held_up_jobs
from monkey_agent.slots.machine_agents import LISTED, WAITS, MachineAgents
from monkey_agent.slots.mount_guard import RoomGuard
from monkey_agent.slots.shared_machine import AgentSlots, SharedMachine, TakenResources, WaitingJob, write_slots
from monkey_agent.slots.slot_numbers import SlotNumbers

#: Thousandths of one GPU.
_WHOLE = 1000
#: Seconds after which what jobs hold is written down where no other agent lives, and between tries to get a slot.
_LATER, _AGAIN = 0.5, 0.5
#: Seconds within which agents that were there see one that begins, and what they hold is written down.
SETTLES = LISTED + _LATER

#: What a job takes of each GPU, in thousandths, and the GPUs.
Room = tuple[int, tuple[str, ...]]


class SlotAllocator:
    """Hands out slots until CPUs, GPUs or memory are used up, or `max_slots` attempts run."""

    def __init__(
        self,
        capacity: Capacity,
        max_slots: int | None = None,
        neighbours: SharedMachine | None = None,
        directory: Path | None = None,
        foreign: BusyGpus | None = None,
        room: RoomGuard | None = None,
        others: MachineAgents | None = None,
    ) -> None:
        """Pack `capacity`; `max_slots`: None for as many slots as it has room for.

        What the `neighbours` have is not handed out, nor are GPUs on which `foreign` processes compute. What we hand
        out is written into `directory`, for others like us. With `others`, the machine is shared evenly. Nothing is
        handed out while there is no `room`.
        """
        self._foreign, self._room, self._others = foreign, room, others
        self.capacity, self.max_slots = capacity, max_slots
        self._neighbours, self._directory = neighbours or SharedMachine([]), directory
        #: What is free, as `JobResources.amounts`.
        self._free = capacity.amounts
        #: What is free of each GPU, in thousandths.
        self._gpus = dict.fromkeys(capacity.gpus, _WHOLE)
        #: The slots that our jobs have.
        self._given: list[Slot] = []
        self._numbers = SlotNumbers()
        #: Jobs that wait for what others hold, and when we last said so, by the machine's clock.
        self._waiting: dict[JobResources, WaitingJob] = {}
        #: Of what was asked for last, what would be free if no other agent had jobs.
        self._theirs: set[JobResources] = set()
        self._said = -math.inf
        self._writing = self._trying = False
        #: See `SlotPort.held_by_others`.
        self.held_by_others = False
        # The others must see us, and write down what they hold, before we take anything.
        self._careful_until = others.clock() + SETTLES if others else -math.inf
        #: Called when it is time to try again.
        self.on_room: Callable[[], None] = lambda: None
        if foreign is not None:
            foreign.on_answer = lambda: self.on_room()
        self._write()

    @property
    def lacking(self) -> str:
        """See `SlotPort.lacking`."""
        return self._room.lacking if self._room else ""

    @property
    def held_up(self) -> str:
        """See `SlotPort.held_up`."""
        waiting = [job for asked, job in self._waiting.items() if asked in self._theirs]
        return describe_held_up_jobs(waiting, self._given, self._others.clock()) if self._others else ""

    @property
    def wanted_by_others(self) -> bool:
        """See `SlotPort.wanted_by_others`."""
        return self._others is not None and any(other.waiting for other in self._others.look())

    def take(self, resources: JobResources) -> Slot | None:
        """Return a slot, or None when none is free now."""
        resources = self._bound(resources)
        self.held_by_others = False
        if self.lacking:
            return None
        old = self._neighbours.taken()
        if self.max_slots is not None and len(self._given) + old.slots >= self.max_slots:
            return None
        used = self._foreign.busy() if self._foreign is not None and resources.gpus else frozenset()
        if used is None:
            return None  # asked now; we are called again
        if not self._find_room(resources, old, frozenset()):
            return None  # our own jobs are in the way
        others = self._others.look() if self._others else []
        if not others:
            return self._take(resources, self._find_room(resources, old, used))
        if self._others and self._others.clock() < self._careful_until:
            self._try_later()
            return None
        theirs = _add(old, others)
        room = self._find_room(resources, theirs, used)
        since = self._wait_since(resources)
        slot = None
        if room and not any(self._defers(resources, room, since, other, theirs, used) for other in others):
            slot = self._take(resources, room)
        if slot is not None and self._exceeds(slot, _add(old, self._look_again())):
            self.give(slot)  # another took it in the same moment
            slot = None
        self.held_by_others = slot is None
        # The driver names GPUs as busy on which their jobs compute, and those of other users.
        free = slot is None and self._find_room(resources, old, used - theirs.gpus.keys())
        self._theirs = self._theirs | {resources} if free else self._theirs - {resources}
        return slot

    def _bound(self, resources: JobResources) -> JobResources:
        cpus = resources.bound_cpus(self.capacity.cpus)
        return resources if cpus == resources.cpus else replace(resources, cpus=cpus)

    def _look_again(self) -> list[AgentSlots]:
        return self._others.look(again=True) if self._others else []

    def _find_room(self, resources: JobResources, theirs: TakenResources, used: frozenset[str]) -> Room | None:
        """Return what a job would take of each GPU, in thousandths, and the GPUs; None where it has no room."""
        if any(amount and self._lacks(name, amount, theirs) for name, amount in resources.amounts.items()):
            return None
        part, gpus = self._choose_gpus(resources.gpus, theirs, used)
        return None if resources.gpus > len(gpus) else (part, gpus)

    def _lacks(self, name: str, amount: int, theirs: TakenResources) -> bool:
        return amount > self._free.get(name, 0) - theirs.amounts.get(name, 0)

    def _take(self, resources: JobResources, room: Room | None) -> Slot | None:
        if room is None:
            return None
        part, gpus = room
        for name, amount in resources.amounts.items():
            self._free[name] = self._free.get(name, 0) - amount
        for gpu in gpus:
            self._gpus[gpu] -= part
        self._waiting.pop(resources, None)
        number = self._numbers.take()
        slot = Slot(resources.cpus, gpus, resources.memory, part, resources.counted, number)
        self._given.append(slot)
        self._tell()
        return slot

    def _choose_gpus(self, count: float, theirs: TakenResources, used: frozenset[str]) -> Room:
        """Return what a job takes of each GPU, in thousandths, and the GPUs: as many as it asks for and there are.

        A job that takes a part of one gets it where the least is left, so that others remain whole.
        """
        free = {}
        for gpu, left in self._gpus.items():
            held = theirs.gpus.get(gpu, 0)
            # Processes on a GPU where no job of ours is are those of others.
            if gpu not in used or left < _WHOLE or held:
                free[gpu] = left - held
        if not 0 < count < 1:
            return _WHOLE, tuple(gpu for gpu, left in free.items() if left == _WHOLE)[: int(count)]
        part = round(count * _WHOLE)
        room = [gpu for gpu, left in free.items() if left >= part]
        return part, (min(room, key=lambda gpu: free[gpu]),) if room else ()

    def give(self, slot: Slot) -> None:
        """Give a slot back."""
        self._given.remove(slot)
        self._numbers.give(slot.number)
        for name, amount in make_amounts(slot.cpus, slot.memory, slot.counted).items():
            self._free[name] = self._free.get(name, 0) + amount
        for gpu in slot.gpus:
            self._gpus[gpu] += slot.part
        self._tell()

    # -- beside other agents ------------------------------------------------------------------------------------------

    def _held(self) -> TakenResources:
        amounts = {name: amount - self._free[name] for name, amount in self.capacity.amounts.items()}
        gpus = {gpu: _WHOLE - left for gpu, left in self._gpus.items() if left < _WHOLE}
        return TakenResources(len(self._given), amounts, gpus)

    def _exceeds(self, slot: Slot, theirs: TakenResources) -> bool:
        """Return whether we and the others hold more than there is of what a slot has."""
        amounts = make_amounts(slot.cpus, slot.memory, slot.counted)
        gpus = any(self._gpus[gpu] < theirs.gpus.get(gpu, 0) for gpu in slot.gpus)
        return gpus or any(amount and self._lacks(name, 0, theirs) for name, amount in amounts.items())

    def _wait_since(self, resources: JobResources) -> float:
        waiting = self._waiting.get(resources)
        return waiting.since if waiting else math.inf

    def _defers(
        self,
        resources: JobResources,
        room: Room,
        since: float,
        other: AgentSlots,
        theirs: TakenResources,
        used: frozenset[str],
    ) -> bool:
        """Return whether another agent goes before a job of ours that would take what it waits for.

        It does if it has less of the machine, or has waited longer.
        """
        ours, before = self._share(self._held()), self._share(other.taken)
        after = theirs + _sum_up(resources, room)
        return any(
            (before, job.since) < (ours, since) and self._hinders(resources, job.resources, after, used)
            for job in other.waiting
        )

    def _hinders(
        self, resources: JobResources, waiting: JobResources, after: TakenResources, used: frozenset[str]
    ) -> bool:
        """Return whether a job leaves another without what both ask for, with `after` taken."""
        ours = resources.amounts
        if any(ours.get(name) and self._lacks(name, amount, after) for name, amount in waiting.amounts.items()):
            return True
        both = resources.gpus and waiting.gpus
        return bool(both and waiting.gpus > len(self._choose_gpus(waiting.gpus, after, used)[1]))

    def _share(self, held: TakenResources) -> float:
        """Return the part of the machine that jobs hold: of what they hold most of."""
        parts = [held.amounts.get(name, 0) / max(1, amount) for name, amount in self.capacity.amounts.items()]
        return max(*parts, sum(held.gpus.values()) / _WHOLE / max(1, len(self.capacity.gpus)))

    def wait(self, resources: JobResources) -> None:
        """See `SlotPort.wait`."""
        assert self._others is not None
        resources = self._bound(resources)
        now, since = self._others.clock(), self._wait_since(resources)
        self._waiting = {asked: job for asked, job in self._waiting.items() if now - job.tried < WAITS}
        self._waiting[resources] = WaitingJob(resources, min(since, now), now)
        if now - self._said > 2 * _AGAIN or since > now:
            self._said = now
            self._write()
        self._try_later()

    def _try_later(self) -> None:
        if not self._trying:
            self._trying = _call_later(_AGAIN * random.uniform(0.5, 1.5), self._try_again)

    def _try_again(self) -> None:
        self._trying = False
        self.on_room()

    def _tell(self) -> None:
        """Write down what our jobs hold: at once where another agent lives, soon where none does."""
        if self._directory is None:
            return
        if self._others is None or self._others.look():
            self._write()
        elif not self._writing:
            self._writing = _call_later(_LATER, self._write)
            if not self._writing:
                self._write()

    def _write(self) -> None:
        self._writing = False
        if self._directory is not None:
            machine = self._others.machine if self._others else ""
            write_slots(self._directory, AgentSlots(self._held(), machine, tuple(self._waiting.values())))

    def fits(self, resources: JobResources) -> bool:
        """Could the machine ever have such a slot?"""
        there = self.capacity.amounts
        return (
            all(amount <= there.get(name, 0) for name, amount in self._bound(resources).amounts.items())
            and resources.gpus <= len(self.capacity.gpus)
            and self.max_slots != 0
        )


def _sum_up(resources: JobResources, room: Room) -> TakenResources:
    """Return what one job takes that has this room."""
    part, gpus = room
    return TakenResources(1, resources.amounts, dict.fromkeys(gpus, part))


def _add(taken: TakenResources, others: list[AgentSlots]) -> TakenResources:
    return sum((other.taken for other in others), taken)


def _call_later(seconds: float, call: Callable[[], None]) -> bool:
    """Have a function called by the loop that runs; returns False where none does."""
    try:
        asyncio.get_running_loop().call_later(seconds, call)
    except RuntimeError:
        return False
    return True
