"""Sharing a machine: with the agent that we replace, and with people who compute on its GPUs."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from monkey.fleet import gpus
from monkey.fleet.machine_capacity import Capacity
from monkey.spec.job.recipe import JobResources
from monkey_agent.lifecycle.state_directory import StateDirectory
from monkey_agent.slots.busy_gpus import BusyGpus
from monkey_agent.slots.shared_machine import _FRESH, SharedMachine
from monkey_agent.slots.slot_allocator import SlotAllocator
from tests.loops import Run

GIB = 1 << 30
MACHINE = Capacity(4, 8 * GIB, ("a", "b"))


def test_a_machine_of_half_a_cpu_runs_one_job_that_asks_for_nothing() -> None:
    slots = SlotAllocator(Capacity(0.5, GIB))
    asked = JobResources()
    assert slots.fits(asked)
    slot = slots.take(asked)
    assert slot is not None and slot.cpus == 0.5
    assert slots.take(asked) is None and slots.take(JobResources(0.1)) is None, "all of it is taken"
    slots.give(slot)
    assert slots.take(JobResources(0.25)) and slots.take(JobResources(0.25)), "parts of it are what they were"
    assert not slots.fits(JobResources(2))


def test_what_the_old_agent_holds_is_not_handed_out_twice(tmp_path: Path) -> None:
    now = 0.0
    home = StateDirectory(tmp_path / "1")
    old = SlotAllocator(MACHINE, max_slots=3, directory=home.directory)
    slot = old.take(JobResources(3, 1, 6 * GIB))
    assert slot is not None and slot.gpus == ("a",)
    new = SlotAllocator(MACHINE, 3, SharedMachine([home.directory, tmp_path / "never"], lambda: now))
    assert new.take(JobResources(2)) is None, "no CPU"
    assert new.take(JobResources(1, 0, 4 * GIB)) is None, "no memory"
    assert new.take(JobResources(1, 2)) is None, "no GPU"
    ours = new.take(JobResources(0.5, 1, GIB))
    assert ours is not None and ours.gpus == ("b",)
    assert new.take(JobResources(0.1)) and new.take(JobResources(0.1)) is None, "three slots, one of them the old one's"
    assert new.fits(JobResources(4, 2, 8 * GIB)), "it waits for that"
    old.give(slot)
    now += 2 * _FRESH
    freed = new.take(JobResources(3, 1))
    assert freed is not None and freed.gpus == ("a",)
    home.close()


def test_an_old_agent_s_gpus_are_shared_with_it(tmp_path: Path) -> None:
    home = StateDirectory(tmp_path / "1")
    old = SlotAllocator(MACHINE, directory=home.directory)
    assert old.take(JobResources(0.1, 0.75)) and old.take(JobResources(0.1, 1))
    new = SlotAllocator(MACHINE, neighbours=SharedMachine([home.directory]))
    assert new.take(JobResources(0.1, 1)) is None and new.take(JobResources(0.1, 0.5)) is None
    part = new.take(JobResources(0.1, 0.25))
    assert part is not None and part.gpus == ("a",)
    # As agents wrote before GPUs were shared.
    (home.directory / "slots.json").write_text('{"slots": 1, "cpus": 1000, "memory": 0, "gpus": ["a"]}')
    new = SlotAllocator(MACHINE, neighbours=SharedMachine([home.directory]))
    part = new.take(JobResources(0.1, 0.25))
    assert part is not None and part.gpus == ("b",)
    home.close()


def test_an_agent_that_is_dead_holds_nothing(tmp_path: Path) -> None:
    home = StateDirectory(tmp_path / "1")
    assert SlotAllocator(MACHINE, directory=home.directory).take(JobResources(4))
    home.close()
    assert SlotAllocator(MACHINE, neighbours=SharedMachine([home.directory])).take(JobResources(4))


def test_gpus_of_others_are_left_alone(run: Run) -> None:
    run(_meet_others())


async def _meet_others() -> None:
    asked, answer = 0, threading.Event()

    def ask() -> frozenset[str]:
        nonlocal asked
        asked += 1
        assert answer.wait(60)
        return frozenset(("a",))

    foreign, told = BusyGpus(ask), asyncio.Event()
    slots = SlotAllocator(MACHINE, foreign=foreign)
    slots.on_room = told.set
    assert slots.take(JobResources(1)), "a job without a GPU asks nobody"
    assert asked == 0
    assert slots.take(JobResources(1, 1)) is None and slots.take(JobResources(1, 1)) is None, "it is being asked"
    answer.set()
    await asyncio.wait_for(told.wait(), 60)
    assert asked == 1
    slot = slots.take(JobResources(1, 1))
    assert slot is not None and slot.gpus == ("b",)
    assert slots.take(JobResources(1, 1)) is None


def test_gpus_are_counted_as_the_driver_does() -> None:
    listing = (
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-aaaa-1)\n"
        "  MIG 3g.40gb     Device  0: (UUID: MIG-bbbb-1)\n  MIG 3g.40gb     Device  1: (UUID: MIG-bbbb-2)\n"
        "GPU 3: NVIDIA H100 80GB HBM3 (UUID: GPU-aaaa-2)\n"
    )
    assert gpus.number_gpus(listing) == [(0, "MIG-bbbb-1"), (0, "MIG-bbbb-2"), (3, "GPU-aaaa-2")]
