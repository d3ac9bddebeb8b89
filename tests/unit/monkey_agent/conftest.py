"""A machine with a runner on it, an agent to kill, and what environments are built from."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monkey_agent.supervisor import leftover_processes
from tests.loops import Run
from tests.unit.monkey_agent.body import Body, until


@pytest.fixture
def body(tmp_path: Path, run: Run) -> Iterator[Body]:
    """Return a machine with a runner on a store in memory."""

    async def make() -> Body:
        return Body(tmp_path)

    body = run(make())
    yield body
    run(body.runner.close())
    run(body.runner.telemetry.close())


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Callable[..., int]]:
    """Return a function that starts an agent with jobs, and returns its pid."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*commands: str) -> int:
        script = Path(__file__).with_name("victim.py")
        agent = subprocess.Popen([sys.executable, str(script), str(tmp_path), *commands])
        started.append(agent)
        asyncio.run(until((tmp_path / "ready").exists))
        return agent.pid

    yield start
    for agent in started:
        agent.kill()
        agent.wait()
    leftover_processes.clear_leftovers(tmp_path / "state")


@pytest.fixture
def wheel(tmp_path: Path) -> str:
    """Return a requirement that needs no network: a package `tiny` that says 42."""
    file = tmp_path / "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("tiny.py", "answer = 42\n")
        archive.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
        archive.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("tiny-1.dist-info/RECORD", "tiny.py,,\ntiny-1.dist-info/METADATA,,\n")
    return f"tiny @ {file.as_uri()}\n"


@pytest.fixture
def without_uv(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose PATH has all that ours has but uv."""
    path = os.pathsep.join(d for d in os.environ["PATH"].split(os.pathsep) if not (Path(d) / "uv").exists())
    assert shutil.which("uv", path=path) is None
    return {**os.environ, "PATH": path}
