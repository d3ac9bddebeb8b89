"""A machine with a runner on it, and an agent to kill."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monkey_agent import leftovers
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
    leftovers.clear(tmp_path / "state")
