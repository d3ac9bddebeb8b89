"""What a container used: the counters that its first process wrote, and which processes are in it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from monkey.processes.container_usage import (
    find_first_contained,
    list_contained,
    make_usage_script,
    read_container_usage,
)
from monkey.processes.process_tree import MARK, list_descendants
from monkey_agent.telemetry.job_meter import make_job_meter

FIRST = """\
memory/memory.max_usage_in_bytes 4096
memory/memory.oom_control oom_kill 0
cpuacct/cpuacct.usage 1500000000
"""
SECOND = "memory.peak 8192\nmemory.events oom 1\nmemory.events oom_kill 2\ncpu.stat usage_usec 250000\n"

NONSENSE = f"memory.peak {'9' * 4000}\nmemory.peak -1\nmemory.peak\n\0\udcff memory.peak ²\nmemory.events oom 3\n"


@pytest.mark.parametrize(
    ("said", "used"),
    [
        (FIRST, (4096, 1.5, False)),
        (SECOND, (8192, 0.25, True)),
        (NONSENSE, (0, 0, False)),
    ],
    ids=["version 1", "version 2", "nonsense"],
)
def test_counters_are_read(tmp_path: Path, said: str, used: tuple[int, float, bool]) -> None:
    file = tmp_path / "usage"
    file.write_bytes(said.encode(errors="surrogateescape"))
    found = read_container_usage(str(file))
    assert (found.peak, found.cpu, found.killed) == used


def test_what_a_job_put_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text(SECOND)
    (tmp_path / "link").symlink_to("real")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "none"):
        assert read_container_usage(str(tmp_path / name)).peak == 0
    assert (tmp_path / "real").exists()


def test_the_lines_of_the_shell_write_a_file_that_can_be_read(tmp_path: Path) -> None:
    script = make_usage_script(f"'{tmp_path}/a usage'")
    done = subprocess.run(["sh", "-ec", script], capture_output=True, check=True)
    assert done.stdout + done.stderr == b""
    assert (tmp_path / "a usage").exists()
    read_container_usage(f"{tmp_path}/a usage")
    subprocess.run(["sh", "-c", make_usage_script("/nowhere/usage")], capture_output=True)


@pytest.mark.needs("mount")
def test_processes_of_a_container_are_told_from_its_runtimes() -> None:
    command = ["unshare", "--map-root-user", "--pid", "--fork", "--kill-child=KILL"]
    command += ["sh", "-c", "echo; read -r _; true"]
    env = {**os.environ, MARK: "/nowhere:1"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as client:
        assert client.stdin is not None and client.stdout is not None
        client.stdout.readline()
        [first] = list_descendants([client.pid])
        assert list_contained([os.getpid(), client.pid, first]) == [first]
        assert find_first_contained([os.getpid(), client.pid, first]) == first
        assert find_first_contained([os.getpid(), client.pid]) == 0
        meter = make_job_meter("/nowhere")
        assert meter.read(os.getpid(), {1: first}) == meter.read(0, {1: first}), "the client's memory is not the job's"
        client.stdin.close()
