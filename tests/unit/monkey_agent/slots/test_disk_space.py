"""A machine whose disk is full begins no job, and does again when there is room."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from monkey.fleet.machine_capacity import Capacity
from monkey.spec.job.recipe import JobResources
from monkey_agent.slots.disk_space import PAUSE, DiskSpaceGuard
from monkey_agent.slots.slot_allocator import SlotAllocator

FULL = """
import pathlib, sys
from monkey_agent.slots.disk_space import DiskSpaceGuard
disk = pathlib.Path(sys.argv[1])
room = DiskSpaceGuard([disk / "not-yet"])
print(room.lacking)
ballast = disk / "ballast"
try:
    ballast.write_bytes(bytes(10_000_000))
except OSError:
    pass
print(room.lacking)
ballast.unlink()
print(room.lacking)
"""


def test_a_disk_without_room_is_told_until_there_is_some(tmp_path: Path, require: Callable[[str], str]) -> None:
    require("mount")
    inside = f"mount -t tmpfs -o size=4m none {tmp_path} && exec {sys.executable} - {tmp_path}"
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", inside]
    done = subprocess.run(command, input=FULL, capture_output=True, text=True, timeout=60, cwd=Path.cwd())
    assert done.returncode == 0, done.stderr
    wanted = f"the disk is full: 0 bytes free at {tmp_path}/not-yet, no job begins until 41 KiB are"
    assert done.stdout.split("\n") == ["", wanted, "", ""]


def test_after_a_job_that_found_no_room_no_other_begins_for_a_while(tmp_path: Path) -> None:
    now = 0.0
    room = DiskSpaceGuard([tmp_path], lambda: now)
    slots = SlotAllocator(Capacity(4, 1 << 30, ()), room=room)
    room.note(OSError(errno.EACCES, "no right"))
    assert not slots.lacking and slots.take(JobResources(1))
    room.note(OSError(errno.ENOSPC, "full"))
    assert "the disk was full" in slots.lacking and slots.take(JobResources(1)) is None
    now = PAUSE
    assert not slots.lacking and slots.take(JobResources(1))
