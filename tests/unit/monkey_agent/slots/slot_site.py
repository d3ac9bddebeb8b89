"""Agents of several projects that share one machine, without agents: their slots alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from monkey.fleet.machine_capacity import Capacity
from monkey.spec.job.counted_resources import CountedResources
from monkey.spec.job.recipe import JobResources
from monkey_agent.lifecycle.state_directory import StateDirectory
from monkey_agent.ports import Slot
from monkey_agent.slots.busy_gpus import BusyGpus
from monkey_agent.slots.machine_agents import MachineAgents
from monkey_agent.slots.slot_allocator import SETTLES, SlotAllocator

GIB = 1 << 30
MACHINE = Capacity(4, 8 * GIB, ("a", "b"))


class SlotSite:
    """Agents of several projects on one machine, whose clock stands still but for `pass_time`."""

    def __init__(self, place: Path) -> None:
        self.place, self.now = place / "monkey", 1000.0
        self.homes: dict[str, StateDirectory] = {}

    def pass_time(self, seconds: float = 3.0) -> None:
        """Let what agents know of each other grow old."""
        self.now += seconds

    def start(
        self,
        project: str,
        machine: str | None = None,
        max_slots: int | None = None,
        foreign: BusyGpus | None = None,
        counted: CountedResources = (),
        *,
        settled: bool = True,
    ) -> SlotAllocator:
        """Start an agent; `settled`: and wait until it may take what there is."""
        home = self.homes[project] = StateDirectory(self.place / project / "local" / "host")
        others = MachineAgents(home.directory, clock=lambda: self.now)
        others.machine = others.machine if machine is None else machine
        slots = SlotAllocator(
            replace(MACHINE, counted=counted), max_slots, directory=home.directory, others=others, foreign=foreign
        )
        self.pass_time(SETTLES if settled else 0)
        return slots


def take(slots: SlotAllocator, **asked: Any) -> Slot:
    """Take a slot that must be free."""
    slot = slots.take(JobResources(**asked))
    assert slot is not None
    return slot


def refused(slots: SlotAllocator, **asked: Any) -> bool:
    """Return whether a job gets no slot; it waits for one then."""
    resources = JobResources(**asked)
    slot = slots.take(resources)
    if slot is None and slots.held_by_others:
        slots.wait(resources)
    return slot is None
