"""The sweeper beside an engine that hangs: a script that answers once a file is there."""

from __future__ import annotations

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from monkey.fleet.container_runtime import ContainerRuntime
from monkey_agent.containers.container_sweep import ContainerSweeper

ENGINE = """#!/bin/sh
echo "$@" >> {calls}
while [ ! -e {release} ]; do sleep 0.05; done
"""


def test_an_agent_leaves_though_its_engine_hangs(tmp_path: Path) -> None:
    """A thread that waits for an engine keeps the loop from its end; what runs is removed once the engine answers."""
    engine, release, calls = tmp_path / "docker", tmp_path / "release", tmp_path / "calls"
    engine.write_text(ENGINE.format(release=release, calls=calls))
    engine.chmod(0o755)
    sweeper, pool = ContainerSweeper(tmp_path, os.environ), ThreadPoolExecutor(1)

    async def live() -> None:
        asyncio.get_running_loop().set_default_executor(pool)
        try:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(sweeper.begin(ContainerRuntime("docker", str(engine))), 0.3)
            sweeper.close()
            pool.submit(int).result(5)
        finally:
            release.touch()

    asyncio.run(live())
    until = time.monotonic() + 30
    while sweeper.labels[1] not in calls.read_text():
        assert time.monotonic() < until, "the process goes on when the agent is gone"
        time.sleep(0.05)
