"""Mounts that must be there before a job begins, by the kernel's list of them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from monkey.fleet.machine_capacity import Capacity
from monkey.spec.job.recipe import JobResources
from monkey.spec.project.mounts import Mount
from monkey_agent.slots.disk_space import DiskSpaceGuard
from monkey_agent.slots.mount_guard import MountGuard
from monkey_agent.slots.slot_allocator import SlotAllocator

LINE = "36 35 0:26 / {place} rw,relatime shared:1 - {type} {source} rw,vers=4.2\n"


def test_nothing_begins_before_all_is_mounted(tmp_path: Path) -> None:
    listed, now = tmp_path / "mountinfo", [0.0]
    guard = MountGuard(
        [Mount("/data", "nas:/export"), Mount("/any thing")], DiskSpaceGuard([tmp_path]), listed, lambda: now[0]
    )
    slots = SlotAllocator(Capacity(2, 1 << 30), room=guard)

    def look(*lines: str) -> str:
        listed.write_text("".join(lines))
        now[0] += 2
        assert (slots.take(JobResources(0.01)) is None) is bool(guard.lacking)
        return slots.lacking

    other = LINE.format(place="/", type="ext4", source="/dev/vda1")
    any_thing = LINE.format(place="/any\\040thing", type="fuse.gcsfuse", source="bucket")
    data = LINE.format(place="/data", type="nfs4", source="nas:/export/")
    assert look(other) == "/data is not mounted: expected nas:/export: no job begins until that is right"
    assert look(other, data) == "/any thing is not mounted: no job begins until that is right"
    assert look(other, any_thing, data) == ""
    wrong = LINE.format(place="/data", type="nfs4", source="old:/export")
    assert "expected nas:/export, found old:/export" in look(other, any_thing, data, wrong), "the topmost counts"


def test_this_machine_s_own_list_is_read(tmp_path: Path) -> None:
    room = DiskSpaceGuard([tmp_path])
    assert MountGuard([Mount("/proc")], room).lacking == MountGuard([], room).lacking == ""
    assert str(tmp_path) in MountGuard([Mount(str(tmp_path))], room).lacking


def test_a_mount_that_waits_for_an_access_is_accessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program stands for `stat`: its access has the server answer, or hangs until a file is there."""
    listed, asked, release = tmp_path / "mountinfo", tmp_path / "asked", tmp_path / "release"
    waits = LINE.format(place="/data", type="autofs", source="systemd-1")
    mounted = LINE.format(place="/data", type="nfs4", source="nas:/export")
    (tmp_path / "stat").write_text(f"""#!/bin/sh
echo "$@" >> {asked}
while [ ! -e {release} ]; do sleep 0.02; done
printf '%s' '{waits}{mounted}' > {listed}.new
mv {listed}.new {listed}
""")
    (tmp_path / "stat").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    listed.write_text(waits)
    guard = MountGuard([Mount("/data", "nas:/export")], DiskSpaceGuard([tmp_path]), listed)
    assert guard.missing.startswith("/data is not mounted: expected nas:/export")
    until = time.monotonic() + 30
    while not asked.exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    assert guard.missing, "a server that hangs is not waited for"
    release.touch()
    while guard.missing:
        assert time.monotonic() < until
        time.sleep(0.02)
    assert asked.read_text() == "/data/.\n", "it is asked once"
