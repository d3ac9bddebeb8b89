"""Environments: built once, whole or not at all, and their failures told."""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from monkey.errors import JobFailed
from monkey_agent import leftovers, processes
from monkey_agent.cache import Cache, lock
from monkey_agent.environment import Environments, name_of
from monkey_agent.ports import Ending
from tests.loops import Run
from tests.unit.monkey_agent.body import Body, alive, until, warden_of


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


async def path_of(environments: Environments, wanted: dict[str, str]) -> Path:
    """Return an environment that is used no longer than it takes to say where it is."""
    path, use = await environments.use(wanted)
    use.close()
    return path


def builds(cache: Path, wanted: dict[str, str]) -> int:
    """Return how often an environment was begun since its log was."""
    return (cache / "environments" / f"{name_of(wanted)}.log").read_text().count(" venv ")


def answer(path: Path) -> bytes:
    """Return what the package in an environment says."""
    code = "import tiny; print(tiny.answer)"
    return subprocess.run([path / "bin" / "python", "-c", code], capture_output=True, check=True).stdout


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


def test_a_build_outlives_a_warden_that_is_killed(tmp_path: Path, slow: dict[str, str], run: Run) -> None:
    async def scenario() -> None:
        body = Body(tmp_path, env=slow)
        running = await body.start("sleep 1000")
        asking = asyncio.ensure_future(body.run("true", environment={"requirements": ""}))
        (builder,) = await until(lambda: steps(tmp_path))
        os.kill(warden_of(body.state), 9)
        assert (await running.wait()).ending is Ending.LOST
        assert alive(builder)
        (tmp_path / "go").touch()
        assert (await asking).ending is Ending.SUCCEEDED
        assert steps(tmp_path) == [builder]
        await body.runner.close()

    run(scenario())


def test_a_build_that_is_killed_is_begun_again(tmp_path: Path, slow: dict[str, str], run: Run) -> None:
    async def scenario() -> None:
        asking = asyncio.ensure_future(path_of(Environments(Cache(tmp_path), slow), {"requirements": ""}))
        (builder,) = await until(lambda: steps(tmp_path))
        os.kill(builder, 9)
        await until(lambda: len(steps(tmp_path)) == 2)
        (tmp_path / "go").touch()
        assert (await asking / "bin" / "python").exists()

    run(scenario())


def test_a_build_that_is_killed_every_time_fails(tmp_path: Path, slow: dict[str, str], run: Run) -> None:
    async def scenario() -> None:
        asking = asyncio.ensure_future(path_of(Environments(Cache(tmp_path), slow), {"requirements": ""}))
        for i in range(3):
            os.kill((await until(lambda i=i: steps(tmp_path)[i:]))[0], 9)
        with pytest.raises(JobFailed, match="killed by signal 9"):
            await asking

    run(scenario())


def test_jobs_run_in_their_environment(body: Body, wheel: str, run: Run) -> None:
    async def scenario() -> None:
        text = "import sys, os, tiny, monkey; print(tiny.answer, sys.prefix == os.environ['VIRTUAL_ENV'])"
        running = await body.start(["python", "-c", text], environment={"requirements": wheel})
        outcome = await running.wait()
        assert outcome.ending is Ending.SUCCEEDED, outcome
        assert (await body.stored(running))["log/000000"] == b"42 True\n"

    run(scenario())


def test_many_who_ask_share_one_build(tmp_path: Path, wheel: str, run: Run) -> None:
    async def scenario() -> None:
        wanted = {"requirements": wheel}
        agents = [Environments(Cache(tmp_path), os.environ) for _ in range(3)]
        paths = await asyncio.gather(*(path_of(agents[i % 3], wanted) for i in range(8)))
        assert len(set(paths)) == 1
        assert builds(tmp_path, wanted) == 1
        assert await path_of(Environments(Cache(tmp_path), os.environ), wanted) == paths[0]
        assert builds(tmp_path, wanted) == 1

    run(scenario())


def test_pip_does_where_there_is_no_uv(tmp_path: Path, wheel: str, without_uv: dict[str, str], run: Run) -> None:
    async def scenario() -> None:
        path = await path_of(Environments(Cache(tmp_path), without_uv), {"requirements": wheel})
        assert answer(path) == b"42\n"

    run(scenario())


def test_a_failure_shows_the_log_and_is_remembered_for_a_while(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        wanted = {"requirements": f"missing @ {(tmp_path / 'missing-1-py3-none-any.whl').as_uri()}\n"}
        environments = Environments(Cache(tmp_path), {**os.environ, "COLUMNS": "80"})
        with pytest.raises(JobFailed, match="install the requirements") as failure:
            await path_of(environments, wanted)
        assert "missing-1-py3-none-any.whl" in failure.value.message
        log = tmp_path / "environments" / f"{name_of(wanted)}.failed"
        built = log.stat().st_mtime_ns
        with pytest.raises(JobFailed, match="install the requirements"):
            await path_of(environments, wanted)
        assert log.stat().st_mtime_ns == built
        forgetful = Environments(Cache(tmp_path), os.environ, remembered=0)
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
            await path_of(Environments(Cache(tmp_path), env), {"python": "3.99"})
        assert f"{ours}, " in failure.value.message and ", 3.98.1: set `python:`" in failure.value.message
        whole = await path_of(Environments(Cache(tmp_path), without_uv), {"python": ours})
        assert (whole / "bin" / "python").exists()

    run(scenario())


@pytest.mark.skipif(shutil.which("uv") is None, reason="needs uv")
def test_a_python_that_uv_does_not_know_is_told_with_those_that_it_does(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        with pytest.raises(JobFailed, match=r"No interpreter found for Python 3\.99") as failure:
            await path_of(Environments(Cache(tmp_path), os.environ), {"python": "3.99"})
        (hint,) = re.findall(r"\(hint: here are (.*), and uv fetches 3\.\d+ to 3\.\d+:", failure.value.message)
        assert "{}.{}.{}".format(*sys.version_info) in hint.split(", ")

    run(scenario())


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, run: Run) -> None:
    (tmp_path / "environments").write_text("in the way")

    async def scenario() -> None:
        with pytest.raises(JobFailed, match="cannot be built"):
            await path_of(Environments(Cache(tmp_path), os.environ), {"requirements": ""})

    run(scenario())


def test_setup_runs_in_the_environment_once(tmp_path: Path, wheel: str, run: Run) -> None:
    ledger = tmp_path / "ledger"
    wanted = {
        "requirements": wheel,
        "setup": f"echo $$ >> {ledger}\npython -c 'import sys, tiny; print(sys.prefix, tiny.answer)' > said\n"
        "printf '#!/bin/sh\\necho hello\\n' > $VIRTUAL_ENV/bin/hello; chmod +x $VIRTUAL_ENV/bin/hello\n",
    }

    async def scenario() -> None:
        agents = [Environments(Cache(tmp_path), os.environ) for _ in range(2)]
        path, *others = await asyncio.gather(*(path_of(agents[i % 2], wanted) for i in range(16)))
        assert set(others) == {path}
        assert len(ledger.read_text().split()) == 1
        assert (path / "setup" / "said").read_text() == f"{path} 42\n"
        body = Body(tmp_path / "machine")
        running = await body.start("hello", environment=wanted)
        assert (await running.wait()).ending is Ending.SUCCEEDED
        assert (await body.stored(running))["log/000000"] == b"hello\n"
        assert name_of(wanted) != name_of({"requirements": wheel})
        await body.runner.close()

    run(scenario())


def test_a_setup_that_fails_tells_its_last_lines(tmp_path: Path, run: Run) -> None:
    wanted = {"setup": "sleep 1000 &\necho $! > background\npwd\necho first >&2; ls /nowhere\necho never\n"}

    async def scenario() -> None:
        with pytest.raises(JobFailed, match=r"could not set the environment up \(exit code 2\): .*/nowhere") as failure:
            await path_of(Environments(Cache(tmp_path), os.environ), wanted)
        assert "first" in failure.value.log_tail
        assert "never" not in failure.value.log_tail
        assert not (tmp_path / "environments" / name_of(wanted)).exists()

    run(scenario())
    # What it left in the background is gone: it would hold the lock.
    assert not [pid for pid in processes.everyone() if str(tmp_path).encode() in processes.read(f"/proc/{pid}/environ")]


def test_environments_that_were_not_used_for_long_go_and_none_in_use(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        many = [{"setup": f"head -c 3000000 /dev/zero > {n}"} for n in range(4)]
        size = 5_000_000  # an environment of uv's, or of venv's without what only pip needs, and 3 MB of ours
        cache = Cache(tmp_path, most=1 << 40)
        environments = Environments(cache, os.environ)
        used, use = await environments.use(many[0])
        others = [await path_of(environments, wanted) for wanted in many[1:]]
        await cache.settle()
        assert await Cache(tmp_path, most=size).trim()
        assert used.exists() and not any(map(Path.exists, others))
        # Another agent's process uses it, too.
        use.close()
        held = lock(f"{used}.use", fcntl.LOCK_SH)
        assert not await Cache(tmp_path, most=0).trim()
        assert used.exists()
        os.close(held)
        assert await Cache(tmp_path, most=0).trim()
        assert [path.name for path in (tmp_path / "environments").iterdir()] == []

    run(scenario())


KILLED = """
import asyncio, os, sys
from pathlib import Path
from monkey_agent.cache import Cache
from monkey_agent.environment import Environments
wanted = {"requirements": sys.argv[2], "setup": "for i in 1 2 3 4 5; do echo $i > $i; sleep 0.02; done"}
print("begin", flush=True)
path, use = asyncio.run(Environments(Cache(Path(sys.argv[1])), os.environ).use(wanted))
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
                for pid in processes.everyone():
                    if str(tmp_path).encode() in processes.read(f"/proc/{pid}/cmdline"):
                        processes.send(pid, 9)
    assert killed >= 3
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    path = Path(done.stdout.split()[-1])
    assert answer(path) == b"42\n"
    assert sorted(file.name for file in (path / "setup").iterdir()) == list("12345")


BUILD = """
import asyncio, os, sys
from pathlib import Path
from monkey_agent import leftovers, processes
from monkey_agent.cache import Cache
from monkey_agent.environment import Environments
asyncio.run(Environments(Cache(Path(sys.argv[1])), os.environ).use({"requirements": sys.argv[2]}))
"""


def test_a_half_built_environment_is_built_anew(
    tmp_path: Path, wheel: str, without_uv: dict[str, str], run: Run
) -> None:
    wanted = {"requirements": wheel}
    path = tmp_path / "environments" / name_of(wanted)

    builder = subprocess.Popen([sys.executable, "-c", BUILD, str(tmp_path), wheel], env=without_uv)

    async def scenario() -> None:
        await until((path / "bin").exists)
        builder.kill()
        builder.wait()
        assert not (path / ".complete").exists()
        # What it had started may still write there: nobody builds beside it.
        found = await path_of(Environments(Cache(tmp_path), without_uv), wanted)
        assert found == path
        assert answer(path) == b"42\n"

    run(scenario())


def test_an_environment_whose_python_is_gone_is_built_anew(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        environments = Environments(Cache(tmp_path), os.environ)
        path = await path_of(environments, {"requirements": "# nothing\n"})
        (path / "bin" / "python").unlink()
        assert await path_of(environments, {"requirements": "# nothing\n"}) == path
        assert (path / "bin" / "python").exists()

    run(scenario())


def test_closing_ends_a_build(tmp_path: Path, without_uv: dict[str, str], run: Run) -> None:
    async def scenario() -> None:
        environments = Environments(Cache(tmp_path), without_uv)
        asking = asyncio.ensure_future(path_of(environments, {"requirements": ""}))
        await until(lambda: list(tmp_path.glob("environments/*/bin")))
        await environments.close()
        with pytest.raises(asyncio.CancelledError):
            await asking

    run(scenario())
    assert not list(tmp_path.glob("environments/*/bin"))
    builders = [pid for pid in processes.everyone() if str(tmp_path).encode() in processes.read(f"/proc/{pid}/cmdline")]
    assert not any(map(alive, builders))


@pytest.mark.skipif(not processes.HAS_PROC, reason="needs /proc")
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
    assert leftovers.clear(tmp_path / "state") >= 1
    assert not [pid for pid in processes.everyone() if str(tmp_path).encode() in processes.read(f"/proc/{pid}/cmdline")]
