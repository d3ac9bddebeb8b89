"""The sockets of workspaces whose path is too long for a socket."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from monkey.removal import remove_tree
from monkey_agent.receiving.metric_sockets import SOCKET_FILE, SOCKET_VARIABLE, MetricSockets, remove_dead_sockets


def test_a_path_that_is_too_long_for_a_socket_gets_a_short_one(tmp_path: Path) -> None:
    root = tmp_path / ("long" * 30)
    root.mkdir()
    sockets = MetricSockets(str(root))
    path = Path(sockets.name_variables(str(root))[SOCKET_VARIABLE])
    assert len(str(path)) < 104 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sender.sendto(b"loss value=1", str(path))
    sender.close()
    assert sockets.is_used() and os.read(sockets.unix, 100) == b"loss value=1"
    sockets.close()
    assert not path.parent.exists()


def test_sockets_of_killed_agents_are_removed_and_those_of_living_ones_stay(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = Path(tempfile.mkdtemp())  # pytest's own path may be too long for a socket
    request.addfinalizer(lambda: remove_tree(str(short)))
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    root = tmp_path / ("long" * 30)
    root.mkdir()
    code = "import os, sys; from monkey_agent.receiving.metric_sockets import MetricSockets\n"
    code += "kept = MetricSockets(sys.argv[1]); os.kill(os.getpid(), 9)"
    environment = {**os.environ, "TMPDIR": str(short), "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code, str(root)], env=environment).returncode == -9
    living = MetricSockets(str(root))
    assert len(list(short.glob("monkey-*"))) == 2
    remove_dead_sockets()
    assert [str(path / SOCKET_FILE) for path in short.glob("monkey-*")] == [
        living.name_variables(str(root))[SOCKET_VARIABLE]
    ]
    living.close()


def test_an_agent_begins_where_no_temporary_directory_can_be_written() -> None:
    code = "import resource; from monkey_agent.receiving.metric_sockets import remove_dead_sockets\n"
    code += "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); remove_dead_sockets()"  # as on a full disk
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-B", "-c", code], env=environment, capture_output=True).returncode == 0


def test_sockets_never_wait_where_python_has_no_name_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS makes no socket so at once: Python's documentation names SOCK_NONBLOCK for Linux alone."""
    monkeypatch.delattr(socket, "SOCK_NONBLOCK")
    with tempfile.TemporaryDirectory() as root:  # pytest's own path may be too long for a socket
        sockets = MetricSockets(root)
        assert not os.get_blocking(sockets.unix) and not os.get_blocking(sockets.udp)
        sockets.close()
