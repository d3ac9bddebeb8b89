"""Environments of jobs: built once for all who ask, kept while they are used, and what is said where one cannot be."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from monkey.errors import JobFailed
from monkey.processes import process_tree
from monkey_agent.cache.cache import Cache, try_lock
from monkey_agent.environments.environment_pool import EnvironmentPool, name_environment
from monkey_agent.facts.interpreter_facts import LOCK
from monkey_agent.ports import AttemptEnd
from tests.loops import Run
from tests.unit.monkey_agent.body import Body
from tests.unit.monkey_agent.environment_answers import answer, builds, path_of

pytestmark = pytest.mark.slow


def test_jobs_run_in_their_environment(body: Body, wheel: str, run: Run) -> None:
    async def scenario() -> None:
        text = "import sys, os, tiny, monkey; print(tiny.answer, sys.prefix == os.environ['VIRTUAL_ENV'])"
        running = await body.start(["python", "-c", text], environment={"requirements": wheel})
        outcome = await running.wait()
        assert outcome.ending is AttemptEnd.SUCCEEDED, outcome
        assert (await body.stored(running))["log/000000"] == b"42 True\n"

    run(scenario())


def test_many_who_ask_share_one_build(tmp_path: Path, wheel: str, run: Run) -> None:
    async def scenario() -> None:
        wanted = {"requirements": wheel}
        agents = [EnvironmentPool(Cache(tmp_path), os.environ) for _ in range(3)]
        paths = await asyncio.gather(*(path_of(agents[i % 3], wanted) for i in range(8)))
        assert len(set(paths)) == 1
        assert builds(tmp_path, wanted) == 1
        assert await path_of(EnvironmentPool(Cache(tmp_path), os.environ), wanted) == paths[0]
        assert builds(tmp_path, wanted) == 1
        (line,) = [line for line in (paths[0] / LOCK).read_text().splitlines() if line.startswith("tiny")]
        assert line.startswith("tiny==1 @ file://"), "its lock is in the environment"

    run(scenario())


def test_pip_does_where_there_is_no_uv(tmp_path: Path, wheel: str, without_uv: dict[str, str], run: Run) -> None:
    async def scenario() -> None:
        path = await path_of(EnvironmentPool(Cache(tmp_path), without_uv), {"requirements": wheel})
        assert answer(path) == b"42\n"

    run(scenario())


def test_a_failure_shows_the_log_and_is_remembered_for_a_while(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        wanted = {"requirements": "missing @ file:///missing-1-py3-none-any.whl\n"}  # a message has no room for more
        environments = EnvironmentPool(Cache(tmp_path), {**os.environ, "COLUMNS": "80"})
        with pytest.raises(JobFailed, match="install the requirements") as failure:
            await path_of(environments, wanted)
        assert "missing-1-py3-none-any.whl" in failure.value.message
        log = tmp_path / "environments" / f"{name_environment(wanted)}.failed"
        built = log.stat().st_mtime_ns
        with pytest.raises(JobFailed, match="install the requirements"):
            await path_of(environments, wanted)
        assert log.stat().st_mtime_ns == built
        forgetful = EnvironmentPool(Cache(tmp_path), os.environ, remembered=0)
        for _ in range(2):
            with pytest.raises(JobFailed, match="install the requirements"):
                await path_of(forgetful, wanted)
            before, built = built, log.stat().st_mtime_ns
            assert built > before, "never tried again"

    run(scenario())


def test_a_python_that_is_not_here_is_named(tmp_path: Path, without_uv: dict[str, str], run: Run) -> None:
    shims = tmp_path / "shims"
    shims.mkdir()
    for name, does in (("python3.98", "echo 3.98.1"), ("python3.99", "echo not installed >&2; exit 127")):
        (shims / name).write_text(f"#!/bin/sh\n{does}\n")
        (shims / name).chmod(0o755)
    ours = "{}.{}.{}".format(*sys.version_info)

    async def scenario() -> None:
        env = {**without_uv, "PATH": f"{shims}:{without_uv['PATH']}"}
        with pytest.raises(JobFailed, match=r"Python 3\.99 is not on this machine") as failure:
            await path_of(EnvironmentPool(Cache(tmp_path), env), {"python": "3.99"})
        assert f"{ours}, " in failure.value.message and ", 3.98.1: set `python:`" in failure.value.message
        whole = await path_of(EnvironmentPool(Cache(tmp_path), without_uv), {"python": ours})
        assert (whole / "bin" / "python").exists()

    run(scenario())


@pytest.mark.skipif(shutil.which("uv") is None, reason="needs uv")
def test_a_python_that_uv_does_not_know_is_told_with_those_that_it_does(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        with pytest.raises(JobFailed, match=r"No interpreter found for Python 3\.99") as failure:
            await path_of(EnvironmentPool(Cache(tmp_path), os.environ), {"python": "3.99"})
        (hint,) = re.findall(r"\(hint: here are (.*), and uv fetches 3\.\d+ to 3\.\d+:", failure.value.message)
        assert "{}.{}.{}".format(*sys.version_info) in hint.split(", ")

    run(scenario())


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, run: Run) -> None:
    (tmp_path / "environments").write_text("in the way")

    async def scenario() -> None:
        with pytest.raises(JobFailed, match="cannot be built"):
            await path_of(EnvironmentPool(Cache(tmp_path), os.environ), {"requirements": ""})

    run(scenario())


def test_setup_runs_in_the_environment_once(tmp_path: Path, wheel: str, run: Run) -> None:
    ledger = tmp_path / "ledger"
    wanted = {
        "requirements": wheel,
        "setup": f"echo $$ >> {ledger}\npython -c 'import sys, tiny; print(sys.prefix, tiny.answer)' > said\n"
        "printf '#!/bin/sh\\necho hello\\n' > $VIRTUAL_ENV/bin/hello; chmod +x $VIRTUAL_ENV/bin/hello\n",
    }

    async def scenario() -> None:
        agents = [EnvironmentPool(Cache(tmp_path), os.environ) for _ in range(2)]
        path, *others = await asyncio.gather(*(path_of(agents[i % 2], wanted) for i in range(16)))
        assert set(others) == {path}
        assert len(ledger.read_text().split()) == 1
        assert (path / "setup" / "said").read_text() == f"{path} 42\n"
        body = Body(tmp_path / "machine")
        running = await body.start("hello", environment=wanted)
        assert (await running.wait()).ending is AttemptEnd.SUCCEEDED
        assert (await body.stored(running))["log/000000"] == b"hello\n"
        assert name_environment(wanted) != name_environment({"requirements": wheel})
        await body.runner.close()

    run(scenario())


def test_a_setup_that_fails_tells_its_last_lines(tmp_path: Path, run: Run) -> None:
    wanted = {"setup": "sleep 1000 &\necho $! > background\npwd\necho first >&2; ls /nowhere\necho never\n"}

    async def scenario() -> None:
        with pytest.raises(JobFailed, match=r"could not set the environment up \(exit code 2\): .*/nowhere") as failure:
            await path_of(EnvironmentPool(Cache(tmp_path), os.environ), wanted)
        assert "first" in failure.value.log_tail
        assert "never" not in failure.value.log_tail
        assert not (tmp_path / "environments" / name_environment(wanted)).exists()

    run(scenario())
    # What it left in the background is gone: it would hold the lock.
    assert not [
        pid
        for pid in process_tree.list_processes()
        if str(tmp_path).encode() in process_tree.read_proc(f"/proc/{pid}/environ")
    ]


def test_a_setup_fails_where_the_first_part_of_a_pipe_does(tmp_path: Path, run: Run) -> None:
    if not shutil.which("bash"):
        pytest.skip("no bash here")
    wanted = {"setup": "sh -c 'echo no such mirror; exit 7' | tee fetched\ntouch never\n"}

    async def scenario() -> None:
        with pytest.raises(JobFailed, match=r"could not set the environment up \(exit code 7\): no such mirror"):
            await path_of(EnvironmentPool(Cache(tmp_path), os.environ), wanted)

    run(scenario())
    (log,) = (tmp_path / "environments").glob("*.failed")
    assert "$ setup: " in log.read_text() and "command -v" not in log.read_text()


def test_environments_that_were_not_used_for_long_go_and_none_in_use(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        many = [{"setup": f"head -c 3000000 /dev/zero > {n}"} for n in range(4)]
        size = 5_000_000  # an environment of uv's, or of venv's without what only pip needs, and 3 MB of ours
        cache = Cache(tmp_path, most=1 << 40)
        environments = EnvironmentPool(cache, os.environ)
        used, use = await environments.use(many[0])
        others = [await path_of(environments, wanted) for wanted in many[1:]]
        await cache.settle()
        assert await Cache(tmp_path, most=size).trim()
        assert used.exists() and not any(map(Path.exists, others))
        # Another agent's process uses it, too.
        use.close()
        held = try_lock(f"{used}.use", fcntl.LOCK_SH)
        assert not await Cache(tmp_path, most=0).trim()
        assert used.exists()
        os.close(held)
        assert await Cache(tmp_path, most=0).trim()
        assert [path.name for path in (tmp_path / "environments").iterdir()] == []

    run(scenario())
