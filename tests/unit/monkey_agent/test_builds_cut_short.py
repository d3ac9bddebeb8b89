"""Builds of environments that are killed, closed, or half done: no job runs in half an environment."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from monkey.errors import JobFailed
from monkey.processes import process_tree
from monkey_agent.cache.cache import Cache
from monkey_agent.environments.environment_pool import EnvironmentPool, name_environment
from monkey_agent.ports import AttemptEnd
from monkey_agent.supervisor import leftover_processes
from tests.loops import Run
from tests.unit.monkey_agent.body import Body, alive, supervisor_of, until
from tests.unit.monkey_agent.environment_answers import answer, path_of

pytestmark = pytest.mark.slow


@pytest.fixture
def slow(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose uv writes its number to the file `steps`, then waits for the file `go`."""
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exit\necho $$ >> {tmp_path}/steps\nfor last; do :; done\n'
        f"while ! [ -e {tmp_path}/go ]; do sleep 0.02; done\n"
        f'exec {sys.executable} -m venv --without-pip "$last"\n'
    )
    uv.chmod(0o755)
    return {**os.environ, "PATH": f"{uv.parent}{os.pathsep}{os.environ['PATH']}"}


def steps(place: Path) -> list[int]:
    """Return the numbers of all builders of `slow` so far."""
    return [int(line) for line in (place / "steps").read_text().split()] if (place / "steps").exists() else []


def test_a_build_outlives_a_supervisor_that_is_killed(tmp_path: Path, slow: dict[str, str], run: Run) -> None:
    async def scenario() -> None:
        body = Body(tmp_path, env=slow)
        running = await body.start("sleep 1000")
        asking = asyncio.ensure_future(body.run("true", environment={"requirements": ""}))
        (builder,) = await until(lambda: steps(tmp_path))
        os.kill(supervisor_of(body.state), 9)
        assert (await running.wait()).ending is AttemptEnd.LOST
        assert alive(builder)
        (tmp_path / "go").touch()
        assert (await asking).ending is AttemptEnd.SUCCEEDED
        assert steps(tmp_path) == [builder]
        await body.runner.close()

    run(scenario())


def test_a_build_that_is_killed_is_begun_again(tmp_path: Path, slow: dict[str, str], run: Run) -> None:
    async def scenario() -> None:
        asking = asyncio.ensure_future(path_of(EnvironmentPool(Cache(tmp_path), slow), {"requirements": ""}))
        (builder,) = await until(lambda: steps(tmp_path))
        os.kill(builder, 9)
        await until(lambda: len(steps(tmp_path)) == 2)
        (tmp_path / "go").touch()
        assert (await asking / "bin" / "python").exists()

    run(scenario())


def test_a_build_that_is_killed_every_time_fails(tmp_path: Path, slow: dict[str, str], run: Run) -> None:
    async def scenario() -> None:
        asking = asyncio.ensure_future(path_of(EnvironmentPool(Cache(tmp_path), slow), {"requirements": ""}))
        for i in range(3):
            os.kill((await until(lambda i=i: steps(tmp_path)[i:]))[0], 9)
        with pytest.raises(JobFailed, match="killed by signal 9"):
            await asking

    run(scenario())


KILLED = """
import asyncio, os, sys
from pathlib import Path
from monkey_agent.cache.cache import Cache
from monkey_agent.environments.environment_pool import EnvironmentPool
wanted = {"requirements": sys.argv[2], "setup": "for i in 1 2 3 4 5; do echo $i > $i; sleep 0.15; done"}
print("begin", flush=True)
path, use = asyncio.run(EnvironmentPool(Cache(Path(sys.argv[1])), os.environ).use(wanted))
print(path, flush=True)
"""


def test_killed_at_any_moment_the_next_one_builds_it_whole(tmp_path: Path, wheel: str) -> None:
    chance, killed = random.Random(3), 0
    command = [sys.executable, "-c", KILLED, str(tmp_path), wheel]
    for _ in range(10):
        agent = subprocess.Popen(command, stdout=subprocess.PIPE)
        with agent:
            assert agent.stdout is not None
            assert agent.stdout.readline() == b"begin\n"
            time.sleep(chance.random() * 0.8)
            agent.kill()
            agent.wait()
            killed += agent.returncode < 0
            if chance.random() < 0.5:  # its builder, too; else that goes on, and the next agent waits for it
                for pid in process_tree.list_processes():
                    if str(tmp_path).encode() in process_tree.read_proc(f"/proc/{pid}/cmdline"):
                        process_tree.send_signal(pid, 9)
    assert killed >= 3
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    path = Path(done.stdout.split()[-1])
    assert answer(path) == b"42\n"
    assert sorted(file.name for file in (path / "setup").iterdir()) == list("12345")


BUILD = """
import asyncio, os, sys
from pathlib import Path
from monkey.processes import process_tree
from monkey_agent.supervisor import leftover_processes
from monkey_agent.cache.cache import Cache
from monkey_agent.environments.environment_pool import EnvironmentPool
asyncio.run(EnvironmentPool(Cache(Path(sys.argv[1])), os.environ).use({"requirements": sys.argv[2]}))
"""


def test_a_half_built_environment_is_built_anew(
    tmp_path: Path, wheel: str, without_uv: dict[str, str], run: Run
) -> None:
    wanted = {"requirements": wheel}
    path = tmp_path / "environments" / name_environment(wanted)

    builder = subprocess.Popen([sys.executable, "-c", BUILD, str(tmp_path), wheel], env=without_uv)

    async def scenario() -> None:
        await until((path / "bin").exists)
        builder.kill()
        builder.wait()
        assert not (path / ".complete").exists()
        # What it had started may still write there: nobody builds beside it.
        found = await path_of(EnvironmentPool(Cache(tmp_path), without_uv), wanted)
        assert found == path
        assert answer(path) == b"42\n"

    run(scenario())


def test_an_environment_whose_python_is_gone_is_built_anew(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        environments = EnvironmentPool(Cache(tmp_path), os.environ)
        path = await path_of(environments, {"requirements": "# nothing\n"})
        (path / "bin" / "python").unlink()
        assert await path_of(environments, {"requirements": "# nothing\n"}) == path
        assert (path / "bin" / "python").exists()

    run(scenario())


def test_closing_ends_a_build(tmp_path: Path, without_uv: dict[str, str], run: Run) -> None:
    async def scenario() -> None:
        environments = EnvironmentPool(Cache(tmp_path), without_uv)
        asking = asyncio.ensure_future(path_of(environments, {"requirements": ""}))
        await until(lambda: list(tmp_path.glob("environments/*/bin")))
        await environments.close()
        with pytest.raises(asyncio.CancelledError):
            await asking

    run(scenario())
    assert not list(tmp_path.glob("environments/*/bin"))
    builders = [
        pid
        for pid in process_tree.list_processes()
        if str(tmp_path).encode() in process_tree.read_proc(f"/proc/{pid}/cmdline")
    ]
    assert not any(map(alive, builders))


@pytest.mark.skipif(not process_tree.HAS_PROC, reason="needs /proc")
def test_a_successor_ends_the_build_of_an_agent_that_was_killed(
    tmp_path: Path, wheel: str, without_uv: dict[str, str], run: Run
) -> None:
    code = "import asyncio, sys\nfrom pathlib import Path\nfrom tests.unit.monkey_agent.body import Body\n"
    code += "async def main():\n    body = Body(Path(sys.argv[1]))\n"
    code += "    await body.start('true', environment={'requirements': sys.argv[2]})\nasyncio.run(main())"
    agent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), wheel], env=without_uv)
    try:
        run(until(lambda: list(tmp_path.glob("cache/environments/*/bin"))))
    finally:
        agent.kill()
        agent.wait()
    assert leftover_processes.clear_leftovers(tmp_path / "state") >= 1
    assert not [
        pid
        for pid in process_tree.list_processes()
        if str(tmp_path).encode() in process_tree.read_proc(f"/proc/{pid}/cmdline")
    ]
