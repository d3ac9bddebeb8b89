"""Directories that killed processes left in a temporary directory, on a machine without a /proc, as macOS is."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.removal import remove_tree
from monkey_stacks.ssh.connection import STALE

#: Begins each of them, and the function that removes those of the dead.
SSH = ("/tmp/monkey-ssh-", "from monkey_stacks.ssh.connection import _clear_stale")
ENGINE = (f"{tempfile.gettempdir()}/monkey-pulumi-", "from monkey_stacks.engine.automation import _clear_stale")


@pytest.mark.parametrize("kind", [SSH, pytest.param(ENGINE, marks=pytest.mark.needs("pulumi-library"))])
def test_those_of_living_processes_stay_and_those_of_dead_ones_go(
    require: Callable[[str], str], request: pytest.FixtureRequest, kind: tuple[str, str]
) -> None:
    require("mount")
    start, cleaner = kind
    ended = subprocess.Popen(["true"])
    ended.wait()
    found = []
    for pid in (os.getpid(), ended.pid):
        path = Path(tempfile.mkdtemp(prefix=f"{start}{pid}-", dir="/"))
        request.addfinalizer(lambda path=path: remove_tree(str(path)))
        (path / "socket").touch()
        os.utime(path, (0, time.time() - STALE - 60))
        found.append(path)
    inside = 'mount -t tmpfs none /proc && exec "$@"'
    command = ["unshare", "--mount", "--map-root-user", "sh", "-ec", inside, "sh"]
    done = subprocess.run(
        [*command, sys.executable, "-c", f"{cleaner}; _clear_stale()"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert [path.exists() for path in found] == [True, False]
