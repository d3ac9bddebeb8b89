"""The machine: what it is, what it carries, and who holds it."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.errors import FleetError
from monkey.fleet import gpus
from monkey.fleet.agent_state import is_agent_alive, read_agent_pid
from monkey.fleet.machine_capacity import Capacity, describe_shortage, format_count, measure_capacity
from monkey.spec.job.recipe import JobResources
from monkey_agent.lifecycle.state_directory import StateDirectory
from monkey_agent.machine import MachineClock
from monkey_agent.slots.slot_allocator import SlotAllocator
from monkey_agent.supervisor.shared_state import ENTRIES, SharedState

GIB = 1 << 30


def test_capacity_is_what_we_may_use() -> None:
    found = measure_capacity()
    assert 0 < found.cpus <= (os.cpu_count() or 1)
    assert 0 < found.memory <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_shortage_names_what_is_too_little_and_what_there_is() -> None:
    found = measure_capacity()
    assert not describe_shortage(JobResources()) and not describe_shortage(
        JobResources(cpus=found.cpus, memory=found.memory)
    )
    assert describe_shortage(JobResources(cpus=found.cpus + 1)) == f"{found.cpus + 1:g} CPUs (it has {found.cpus:g})"
    there = len(found.gpus)
    short = describe_shortage(JobResources(cpus=0.5, memory=found.memory * 2, gpus=there + 1))
    asked = "1 GPU" if there == 0 else f"{there + 1} GPUs"
    assert describe_shortage(JobResources(memory=99_999 << 40)).startswith("99999 TiB of memory (it has ")
    assert "GiB of memory" in short and f"{asked} (it has {there})" in short and "CPU" not in short


def test_numbers_and_their_nouns() -> None:
    assert [format_count(number, "GPU") for number in (0, 0.5, 1, 2)] == ["0 GPUs", "0.5 GPUs", "1 GPU", "2 GPUs"]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="Linux alone has affinities")
def test_capacity_respects_the_affinity() -> None:
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    code += "from monkey.fleet.machine_capacity import measure_capacity; print(measure_capacity().cpus)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) <= 1.0


def test_the_clock_only_moves_forward() -> None:
    clock = MachineClock()
    first = clock.now()
    assert clock.now() >= first
    assert abs(clock.wall() - time.time()) < 5
    if sys.platform == "linux":
        assert math.isclose(first, float(Path("/proc/uptime").read_text().split()[0]), abs_tol=1)


def test_a_listing_of_gpus_is_read() -> None:
    listing = (
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-aaaa-1)\n"
        "  MIG 3g.40gb     Device  0: (UUID: MIG-bbbb-1)\n  MIG 3g.40gb     Device  1: (UUID: MIG-bbbb-2)\n"
        "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-aaaa-2)\n"
    )
    assert gpus.parse_gpu_list(listing) == ("MIG-bbbb-1", "MIG-bbbb-2", "GPU-aaaa-2")
    assert gpus.parse_gpu_list("No devices were found\n") == ()


@pytest.mark.parametrize(
    ("given_", "expected"), [("", ()), ("0,1", ("0", "1")), ("GPU-a, GPU-b", ("GPU-a", "GPU-b")), ("0,-1,1", ("0",))]
)
def test_cuda_visible_devices_is_respected(
    given_: str, expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given_)
    assert gpus.list_gpus() == expected


def test_slots_are_packed() -> None:
    slots = SlotAllocator(Capacity(2, 8 * GIB, ("a", "b")))
    one, two = slots.take(JobResources(1, 1, 4 * GIB)), slots.take(JobResources(1, 1, 4 * GIB))
    assert one is not None and two is not None
    assert (one.gpus, two.gpus) == (("a",), ("b",))
    assert slots.take(JobResources(0.1)) is None
    slots.give(one)
    assert slots.take(JobResources(0.5, 0, 5 * GIB)) is None, "no memory"
    assert slots.take(JobResources(0.5, 2, 0)) is None, "no GPU"
    again = slots.take(JobResources(1, 1, 4 * GIB))
    assert again == one


def test_parts_of_gpus_fill_one_before_the_next() -> None:
    slots = SlotAllocator(Capacity(9, GIB, ("a", "b")))
    taken = [slots.take(JobResources(1, 0.25)) for _ in range(4)]
    assert [slot and slot.gpus for slot in taken] == [("a",)] * 4
    whole = slots.take(JobResources(1, 1))
    assert whole is not None and whole.gpus == ("b",)
    assert slots.take(JobResources(1, 0.25)) is None and slots.take(JobResources(1, 1)) is None
    assert taken[0] is not None
    slots.give(taken[0])
    slots.give(whole)
    assert slots.take(JobResources(1, 2)) is None, "one of them is shared"
    again = slots.take(JobResources(1, 0.2))
    assert again is not None and again.gpus == ("a",), "b remains whole"
    other = slots.take(JobResources(1, 0.1))
    assert other is not None and other.gpus == ("b",)


def test_thirds_of_a_gpu_come_out_even() -> None:
    slots = SlotAllocator(Capacity(9, GIB, ("a",)))
    assert [slots.take(JobResources(1, 0.333)) is not None for _ in range(4)] == [True, True, True, False]


def test_tenths_of_cpus_come_out_even() -> None:
    slots = SlotAllocator(Capacity(1, GIB))
    taken = [slots.take(JobResources(0.1)) for _ in range(10)]
    assert None not in taken
    assert slots.take(JobResources(0.1)) is None


def test_slots_say_what_never_fits() -> None:
    slots = SlotAllocator(Capacity(2, 8 * GIB, ("a",)), max_slots=3)
    assert slots.fits(JobResources(2, 1, 8 * GIB))
    assert not any(map(slots.fits, [JobResources(2.5), JobResources(1, 2), JobResources(1, 0, 9 * GIB)]))
    taken = [slots.take(JobResources(0.1)) for _ in range(4)]
    assert [slot is not None for slot in taken] == [True, True, True, False]


SIZES = st.builds(
    JobResources,
    st.sampled_from([0.1, 0.5, 1, 3]),
    st.sampled_from([0, 0.25, 0.4, 1, 2]),
    st.sampled_from([0, GIB, 3 * GIB]),
)


@given(st.lists(st.tuples(st.booleans(), SIZES), max_size=40))
def test_slots_never_exceed_the_machine(steps: list[tuple[bool, JobResources]]) -> None:
    capacity = Capacity(4, 8 * GIB, ("a", "b", "c"))
    slots = SlotAllocator(capacity)
    held = []
    for take, resources in steps:
        if take:
            slot = slots.take(resources)
            if slot is not None:
                held.append(slot)
        elif held:
            slots.give(held.pop(0))
        assert sum(slot.cpus for slot in held) <= capacity.cpus + 1e-9
        assert sum(slot.memory for slot in held) <= capacity.memory
        used = Counter[str]()
        for slot in held:
            used.update(dict.fromkeys(slot.gpus, slot.part))
        assert max(used.values(), default=0) <= 1000 and set(used) <= set(capacity.gpus)
    for slot in held:
        slots.give(slot)
    assert slots.take(JobResources(4, 3, 8 * GIB)) is not None


def test_one_agent_holds_a_home(tmp_path: Path) -> None:
    home = StateDirectory(tmp_path / "home")
    assert is_agent_alive(tmp_path / "home")
    assert read_agent_pid(tmp_path / "home") == os.getpid()
    with pytest.raises(FleetError, match=f"already runs here .process {os.getpid()}"):
        StateDirectory(tmp_path / "home")
    home.close()
    assert not is_agent_alive(tmp_path / "home")
    StateDirectory(tmp_path / "home").close()


def test_who_only_asks_does_not_keep_an_agent_out(tmp_path: Path) -> None:
    import fcntl
    import threading

    StateDirectory(tmp_path).close()
    asking = os.open(tmp_path / "lock", os.O_RDONLY)
    fcntl.flock(asking, fcntl.LOCK_SH)
    timer = threading.Timer(0.2, os.close, [asking])
    timer.start()
    StateDirectory(tmp_path).close()
    timer.join()


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FleetError, match="cannot be used"):
        StateDirectory(tmp_path / "file" / "home")


def test_the_register_remembers_what_runs(tmp_path: Path) -> None:
    path = str(tmp_path / "register")
    ours = SharedState.create(path, "boot-1")
    ours.deadline = 12.5
    ours.enter(7, 1.0, 2.0, 0)
    entries = [ours.enter(100 + i, 1.0, 2.0) for i in range(ENTRIES)]
    assert entries[-1] == -1, "one more than it has room for"
    theirs = SharedState(path)
    assert (theirs.boot, theirs.deadline) == ("boot-1", 12.5)
    assert len(theirs.entries()) == ENTRIES
    for entry in entries:
        ours.leave(entry)
    assert theirs.entries() == [(7, 1.0, 2.0), (0, 0.0, 0.0)]
    ours.close()
    theirs.close()
