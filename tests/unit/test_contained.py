"""Nothing that a contained command started outlives it, or who ran it."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import contained

pytestmark = pytest.mark.needs("contained")

#: Seconds that count as never.
NEVER = 30.0
#: Runs a command as `invoke test` runs pytest.
CALLER = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
#: Mounts something, starts a daemon, and stays.
COMMAND = """
mount -t tmpfs {mark} {place}
setsid sh {daemon} &
sleep 1000
"""
DAEMON = """
trap '' TERM HUP
echo ready
sleep 1000
"""


def find(mark: str) -> dict[int, str]:
    """Return the processes with such a word, by number."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if mark in line:
            found[int(path.parent.name)] = line
    return found


@pytest.fixture
def mark() -> Iterator[str]:
    """Return a word for all that a test starts; none of it is left behind."""
    word = f"contained-{secrets.token_hex(8)}"
    yield word
    for pid in find(word):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("killed", ["caller", "command"])
def test_nothing_outlives_who_is_killed(mark: str, tmp_path: Path, killed: str) -> None:
    (daemon := tmp_path / f"{mark}-daemon").write_text(DAEMON)
    (place := tmp_path / "place").mkdir()
    (command := tmp_path / f"{mark}-command").write_text(COMMAND.format(mark=mark, place=place, daemon=daemon))
    words = contained.contain(["sh", str(command)])
    with subprocess.Popen([sys.executable, "-c", CALLER, *words], stdout=subprocess.PIPE) as caller:
        assert caller.stdout is not None
        assert caller.stdout.readline() == b"ready\n"
        found = find(mark)
        [ours] = [pid for pid, line in found.items() if line.startswith(f"sh {command}")]
        assert any(line.startswith(f"sh {daemon}") for line in found.values())
        os.kill({"caller": caller.pid, "command": ours}[killed], signal.SIGKILL)
    assert caller.returncode != 0
    deadline = time.monotonic() + NEVER
    while left := find(mark):
        assert time.monotonic() < deadline, left
        time.sleep(0.02)
    assert mark not in Path("/proc/self/mounts").read_text()


def test_it_exits_as_the_command_does() -> None:
    assert subprocess.run(contained.contain(["sh", "-c", "exit 7"])).returncode == 7
