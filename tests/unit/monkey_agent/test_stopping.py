"""Jobs that are asked to stop, or run out of time."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from monkey.processes.process_tree import HAS_PROC, list_descendants
from monkey_agent.ports import AttemptEnd
from tests.loops import Run
from tests.unit.monkey_agent.body import Body, supervisor_of, until


def test_a_job_that_ignores_the_request_is_killed_after_its_grace(body: Body, tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        deaf = f"trap '' TERM; touch {tmp_path}/ready; while :; do sleep 0.05; done"
        running = await body.start(["sh", "-c", deaf], settings={"grace": 0.3})
        await until((tmp_path / "ready").exists)
        began = time.monotonic()
        await running.stop("cancelled")
        assert 0.3 <= time.monotonic() - began < 30
        outcome = await running.wait()
        assert (outcome.ending, outcome.reason, outcome.exit_code) == (AttemptEnd.STOPPED, "cancelled", 137)

    run(scenario())


def test_a_job_that_listens_has_its_grace(body: Body, tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        command = f"trap 'echo saved; exit 0' TERM; touch {tmp_path}/ready; while :; do sleep 0.05; done"
        running = await body.start(["sh", "-c", command], settings={"grace": 60})
        await until((tmp_path / "ready").exists)
        await running.stop("cancelled")
        outcome = await running.wait()
        assert (outcome.ending, outcome.exit_code) == (AttemptEnd.STOPPED, 0)
        assert (await body.stored(running))["log/000000"].endswith(b"saved\n")

    run(scenario())


@pytest.mark.skipif(not HAS_PROC, reason="needs a subreaper")
def test_what_a_shell_started_has_the_grace_though_the_shell_ends_at_once(body: Body, tmp_path: Path, run: Run) -> None:
    # What saves may wait for a network all the while, and shared memory is removed when its owner has ended.
    (tmp_path / "train.py").write_text(
        "import signal, sys, time\n"
        "from multiprocessing.shared_memory import SharedMemory\n"
        "def save(*_):\n"
        "    time.sleep(1.5)\n"
        "    print('saved', flush=True)\n"
        "    signal.raise_signal(signal.SIGKILL)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        "print('/dev/shm/' + SharedMemory(create=True, size=99).name, flush=True)\n"
        f"open({str(tmp_path / 'ready')!r}, 'w').close()\n"
        "while True: time.sleep(0.01)\n"
    )

    async def scenario() -> str:
        command = f"true\n{sys.executable} {tmp_path}/train.py\ntrue"
        running = await body.start(["sh", "-c", command], settings={"grace": 60})
        await until((tmp_path / "ready").exists)
        began = time.monotonic()
        await running.stop("cancelled")
        assert (await running.wait()).reason == "cancelled"
        assert time.monotonic() - began < 30  # and not the grace
        memory, saved, *_ = (await body.stored(running))["log/000000"].splitlines()
        assert saved == b"saved"
        return memory.decode()

    assert not Path(run(scenario())).exists()


def test_a_timeout_counts_only_what_ran(body: Body, run: Run) -> None:
    async def scenario() -> None:
        running = await body.start("sleep 1000", settings={"timeout": 0.6, "grace": 5})
        began = time.monotonic()
        await asyncio.sleep(0.2)
        running.freeze()
        await asyncio.sleep(1)
        assert not running.process.ended.done()
        running.thaw()
        outcome = await running.wait()
        assert 1.5 <= time.monotonic() - began < 30
        assert (outcome.ending, outcome.reason) == (AttemptEnd.FAILED, "timed out after 0.6s")
        assert 0.5 <= outcome.seconds < 15

    run(scenario())


@pytest.mark.slow
def test_a_timeout_does_not_count_what_the_supervisor_froze(body: Body, run: Run) -> None:
    async def scenario() -> None:
        running = await body.start("sleep 2", settings={"timeout": 3})
        body.runner.renew(body.runner.clock.now() + 0.5)
        await asyncio.sleep(0)
        # The agent stands still; so does the job, most of that.
        time.sleep(3.5)  # noqa: ASYNC251
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(running.process.ended), 0.5)
        assert await running.process.active() < 2
        body.runner.renew(body.runner.clock.now() + 3600)
        outcome = await running.wait()
        assert (outcome.ending, outcome.reason) == (AttemptEnd.SUCCEEDED, "")
        assert outcome.seconds < 1.2

    run(scenario())


@pytest.mark.slow
def test_a_timeout_does_not_count_what_stopped_everything(body: Body, tmp_path: Path, run: Run) -> None:
    # As `docker pause` does, or a machine whose hypervisor stops it.
    async def scenario() -> None:
        ready = tmp_path / "ready"
        running = await body.start(f"touch {ready}; sleep 2", settings={"timeout": 4})
        await until(ready.exists)
        supervisor = supervisor_of(body.state)
        stopped = [supervisor, *list_descendants([supervisor])]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(5)  # noqa: ASYNC251
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        outcome = await running.wait()
        assert (outcome.ending, outcome.reason) == (AttemptEnd.SUCCEEDED, "")
        assert outcome.seconds < 4

    run(scenario())


def test_stopping_what_has_ended_changes_nothing(body: Body, run: Run) -> None:
    async def scenario() -> None:
        running = await body.start("true")
        await until(running.process.ended.done)
        await running.stop("too late")
        assert (await running.wait()).ending is AttemptEnd.SUCCEEDED
        assert await running.wait() is await running.wait()

    run(scenario())
