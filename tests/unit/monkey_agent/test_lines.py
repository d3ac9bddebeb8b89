"""Jobs in line behind others: the supervisor begins each once the one before it has exited, without the agent."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from monkey_agent.execution.running_attempt import RunningAttempt
from monkey_agent.ports import AttemptEnd
from tests.loops import Run
from tests.unit.monkey_agent.body import Body, until

#: Long enough for a job that may begin to have begun.
WHILE = 0.3


def enters(ledger: Path, *then: str) -> list[str]:
    """Return a job that enters itself in a ledger, and then does more."""
    return ["sh", "-c", "; ".join([f"echo $MONKEY_JOB >> {ledger}", *then])]


async def line(body: Body, ledger: Path, first: str, count: int = 2) -> list[RunningAttempt]:
    """Return a job that waits for the file `go` and ends as `first` says, and those in line behind it."""
    waits = f"while ! test -e {ledger.parent}/go; do sleep 0.01; done"
    made = [await body.start(enters(ledger, waits, first), job="0")]
    for n in range(1, count):
        made.append(await body.start(enters(ledger), job=str(n), after=made[-1]))
    await until(lambda: ledger.exists() and begun(ledger))  # it is there before the line is
    return made


def begun(ledger: Path) -> list[str]:
    return ledger.read_text().split()


def test_each_begins_when_the_one_before_has_exited_though_the_agent_does_nothing(
    body: Body, tmp_path: Path, run: Run
) -> None:
    async def scenario() -> None:
        ledger = tmp_path / "ledger"
        jobs = await line(body, ledger, "exit 3", count=4)
        await asyncio.sleep(WHILE)
        assert begun(ledger) == ["0"]
        assert [job.begun for job in jobs] == [True, False, False, False]
        (tmp_path / "go").touch()
        until_then = time.monotonic() + 10
        while len(begun(ledger)) < 4 and time.monotonic() < until_then:
            time.sleep(0.01)  # the agent's only thread: nobody hears the supervisor  # noqa: ASYNC251
        assert begun(ledger) == ["0", "1", "2", "3"]
        assert [(await job.wait()).ending for job in jobs] == [AttemptEnd.FAILED] + [AttemptEnd.SUCCEEDED] * 3

    run(scenario())


@pytest.mark.parametrize("how", ["stopped", "crashed", "frozen", "out of time"])
def test_where_the_one_before_did_not_exit_by_itself_the_agent_is_waited_for(
    body: Body, tmp_path: Path, run: Run, how: str
) -> None:
    async def scenario() -> None:
        ledger = tmp_path / "ledger"
        before, after = await line(body, ledger, "kill -SEGV $$" if how == "crashed" else "true")
        if how == "stopped":
            await before.stop("paused")
        elif how == "frozen":
            after.freeze()
        elif how == "out of time":
            body.runner.renew(body.runner.clock.now())
        (tmp_path / "go").touch()
        await asyncio.sleep(WHILE)
        assert begun(ledger) == ["0"]
        body.runner.renew(body.runner.clock.now() + 3600)
        await before.wait()
        after.begin()
        if how == "frozen":
            await asyncio.sleep(WHILE)
            assert begun(ledger) == ["0"]
            after.thaw()
        assert (await after.wait()).ending is AttemptEnd.SUCCEEDED
        assert begun(ledger) == ["0", "1"]

    run(scenario())


def test_a_turn_that_comes_after_the_deadline_is_none(body: Body, tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        ledger = tmp_path / "ledger"
        before, after = await line(body, ledger, "true")
        body.runner.renew(body.runner.clock.now())
        (tmp_path / "go").touch()
        after.begin()
        outcome = await after.wait()
        assert (outcome.ending, outcome.reason) == (AttemptEnd.STOPPED, "out of touch with the store before it began")
        body.runner.renew(body.runner.clock.now() + 60)  # what is frozen hears no SIGTERM
        await before.stop("enough")
        assert begun(ledger) == ["0"]

    run(scenario())


def test_who_is_stopped_in_line_never_begins_and_those_behind_wait(body: Body, tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        ledger = tmp_path / "ledger"
        first, second, third = await line(body, ledger, "true", count=3)
        await second.stop("paused")
        outcome = await second.wait()
        assert (outcome.ending, outcome.reason, outcome.seconds) == (AttemptEnd.STOPPED, "paused", 0)
        (tmp_path / "go").touch()
        await first.wait()
        await asyncio.sleep(WHILE)
        assert begun(ledger) == ["0"]
        third.begin()
        assert (await third.wait()).ending is AttemptEnd.SUCCEEDED
        assert begun(ledger) == ["0", "2"]

    run(scenario())


def test_the_time_of_a_job_in_line_does_not_run(body: Body, tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        ledger = tmp_path / "ledger"
        (before,) = await line(body, ledger, "true", count=1)
        after = await body.start(["true"], after=before, settings={"timeout": WHILE / 2})
        await asyncio.sleep(WHILE * 2)
        (tmp_path / "go").touch()
        assert (await after.wait()).ending is AttemptEnd.SUCCEEDED

    run(scenario())


def test_nobody_in_line_begins_when_the_supervisor_is_killed(body: Body, tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        ledger = tmp_path / "ledger"
        jobs = await line(body, ledger, "true", count=3)
        assert body.runner._launcher._supervisor is not None
        os.kill(body.runner._launcher._supervisor.pid, signal.SIGKILL)
        # `go` is never there: the first job could succeed before the supervisor notes that its guard is gone.
        assert [(await job.wait()).ending for job in jobs] == [AttemptEnd.LOST] * 3
        assert begun(ledger) == ["0"]

    run(scenario())
