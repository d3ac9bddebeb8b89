"""An attempt that waits for what is being made can be given up; what was made for it alone is, too."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from monkey.errors import JobFailed, KeyMissing
from monkey.processes import process_tree
from monkey.spec.yaml.units import format_duration
from monkey.store.memory import MemoryStore
from monkey_agent.cache.cache import Cache
from monkey_agent.cache.single_flight import SingleFlight, run_to_end
from monkey_agent.environments.environment_pool import EnvironmentPool, name_environment
from monkey_agent.ports import AttemptEnd
from tests.loops import Run
from tests.unit.monkey_agent.body import DAEMON, HIDDEN, Body, alive, killed_after, pids, until

pytestmark = pytest.mark.slow


def hanging(place: Path) -> tuple[dict[str, str], list[Path]]:
    """Return an environment whose setup never ends, and where it and what it left behind write their numbers."""
    files = [place / name for name in ("setup", "daemon", "hidden", "child")]
    stay = f"sleep 1000 & echo $! > {files[3]}; echo $$ > {files[0]}; echo waiting for a mirror; wait"
    return {"setup": DAEMON.format(files[1]) + HIDDEN.format(files[2]) + stay}, files


@pytest.mark.skipif(not process_tree.HAS_PROC, reason="needs /proc")
def test_an_attempt_given_up_ends_the_build_that_it_alone_waits_for(tmp_path: Path, run: Run) -> None:
    wanted, files = hanging(tmp_path)
    entry = tmp_path / "cache" / "environments" / name_environment(wanted)

    async def scenario() -> None:
        body = Body(tmp_path)
        asking = asyncio.ensure_future(body.start("true", environment=wanted))
        found = await until(lambda: pids(*files))
        assert (entry / "bin" / "python").exists()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert not any(map(alive, found)), "something of the build goes on"
        assert not entry.exists()
        left = {file.name for file in entry.parent.iterdir()}
        assert left == {f"{entry.name}.use", f"{entry.name}.lock"}
        # The next one that wants it begins anew.
        for file in files:
            file.unlink()
        again = asyncio.ensure_future(body.start("true", environment=wanted))
        others = await until(lambda: pids(*files))
        assert not set(others) & set(found)
        began = time.monotonic()
        await body.runner.close()  # as the agent leaves
        assert time.monotonic() - began < 10
        with pytest.raises(asyncio.CancelledError):
            await again
        assert not any(map(alive, others))

    with killed_after(*files):
        run(scenario())


def test_those_who_go_on_waiting_get_what_one_of_them_gave_up(tmp_path: Path, run: Run) -> None:
    ledger, go = tmp_path / "ledger", tmp_path / "go"
    wanted = {"setup": f"echo $$ >> {ledger}\nwhile ! [ -e {go} ]; do sleep 0.02; done\n"}

    async def scenario() -> None:
        body = Body(tmp_path)
        one, other = (asyncio.ensure_future(body.start("true", environment=wanted)) for _ in range(2))
        await until(lambda: pids(ledger))
        one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one
        go.touch()
        assert (await (await other).wait()).ending is AttemptEnd.SUCCEEDED
        assert len(ledger.read_text().split()) == 1
        await body.runner.close()

    run(scenario())


@pytest.mark.skipif(not process_tree.HAS_PROC, reason="needs /proc")
def test_a_build_that_hangs_fails_in_time_and_tells_its_last_lines(tmp_path: Path, run: Run) -> None:
    wanted, files = hanging(tmp_path)

    async def scenario() -> None:
        body = Body(tmp_path)
        # Making an environment takes two seconds or twenty, as busy as the machine is: what hangs is the next step.
        began = time.monotonic()
        await (await body.start("true", environment={"setup": "true"})).wait()
        limited = {"build_timeout": 5 + 3 * round(time.monotonic() - began)}
        within = format_duration(limited["build_timeout"])
        expected = f"could not set the environment up within {within}: waiting for a m"
        with pytest.raises(JobFailed, match=expected) as failed:
            await body.start("true", job="a" * 16, environment=wanted, settings=limited)
        assert "environment: {timeout: …}" in failed.value.message
        assert failed.value.log_tail[-1] == "waiting for a mirror"
        assert not any(map(alive, pids(*files)))
        # Its whole log is that of the job.
        whole = (await body.stored("a" * 16))["log/000000"].decode()
        assert " venv " in whole and whole.endswith("waiting for a mirror\n")
        # Who asks again at once is told of it; with more time, it is tried again.
        with pytest.raises(JobFailed) as failed:
            await body.start("true", environment=wanted, settings=limited)
        assert failed.value.message.endswith(f"(its whole log: monkey logs {'a' * 16})")
        for file in files:
            file.unlink()
        asking = asyncio.ensure_future(body.start("true", environment=wanted, settings={"build_timeout": 400}))
        await until(lambda: pids(*files))
        asking.cancel()
        await asyncio.wait([asking])
        await body.runner.close()

    with killed_after(*files):
        run(scenario())


@pytest.mark.skipif(not process_tree.HAS_PROC, reason="needs /proc")
def test_what_a_setup_leaves_running_ends_with_it(tmp_path: Path, run: Run) -> None:
    files = [tmp_path / name for name in ("daemon", "hidden", "child")]
    waits = "".join(f"while ! [ -e {file} ]; do sleep 0.01; done; " for file in files)
    setup = f"{DAEMON.format(files[0])}{HIDDEN.format(files[1])}sleep 1000 & echo $! > {files[2]}; {waits}"

    async def scenario() -> None:
        environments = EnvironmentPool(Cache(tmp_path / "cache"), os.environ)
        _, use = await environments.use({"setup": setup})
        assert not any(map(alive, pids(*files)))
        use.close()

    with killed_after(*files):
        run(scenario())


def test_who_waits_for_another_process_s_build_does_not_wait_for_ever(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        cache = Cache(tmp_path / "cache")
        entry = cache.root / "environments" / name_environment({"setup": "true"})
        async with cache.making(entry):
            with pytest.raises(JobFailed, match=r"another process has been at it for 1 s, and holds: .*\.lock"):
                await EnvironmentPool(cache, os.environ).use({"setup": "true"}, limit=1)

    run(scenario())


def test_a_secret_is_masked_in_what_is_told_of_a_build(tmp_path: Path, run: Run) -> None:
    env = {**os.environ, "TOKEN": "s3cret-value", "INDEX": "https://s3cret-value@example.org"}

    async def scenario() -> None:
        body = Body(tmp_path, env=env)
        setup = {"setup": "echo error: $INDEX; exit 3"}
        with pytest.raises(JobFailed) as failed:
            await body.start("true", "b" * 16, environment=setup, settings={"secrets": ["TOKEN"]})
        log = (await body.stored("b" * 16))["log/000000"].decode()
        told = [failed.value.message, *failed.value.log_tail, log]
        assert "s3cret-value" not in "".join(told)
        assert all("https://***@example.org" in text for text in (told[0], told[-2], log))
        await body.runner.close()

    run(scenario())


def test_a_fetch_that_is_given_up_ends_and_is_begun_anew(tmp_path: Path, run: Run) -> None:
    class Slow(MemoryStore):
        """A store that never gives any file."""

        asked = ended = 0

        async def get_file(self, key: str, path: Path) -> None:
            """Wait for ever."""
            self.asked += 1
            try:
                await asyncio.Event().wait()
            finally:
                self.ended += 1
            raise KeyMissing(key)

    async def scenario() -> None:
        store = Slow()
        body = Body(tmp_path, store)
        code = await body.code({})
        for turn in (1, 2):
            asking = asyncio.ensure_future(body.start("true", code=code, datasets={"d": "0" * 32}))
            await until(lambda turn=turn: store.asked == turn)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert store.ended == turn
        await body.runner.close()

    run(scenario())


def test_the_last_who_waits_is_gone_when_the_work_is(run: Run) -> None:
    said: list[str] = []

    async def work() -> str:
        said.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            await run_to_end(lambda: time.sleep(0.2))
            said.append("ended")
        return ""

    async def scenario() -> None:
        flights: SingleFlight[str] = SingleFlight()
        first = asyncio.ensure_future(flights.join("name", work))
        await until(lambda: said)
        first.cancel()
        await asyncio.sleep(0)
        second = asyncio.ensure_future(flights.join("name", work))  # while it ends
        await asyncio.wait([first])
        assert first.cancelled() and said[:2] == ["begun", "ended"]
        await until(lambda: said[2:] == ["begun"])
        second.cancel()
        await asyncio.wait([second])
        assert said == ["begun", "ended"] * 2

    run(scenario())
