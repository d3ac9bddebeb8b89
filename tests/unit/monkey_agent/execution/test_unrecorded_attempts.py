"""Attempts that exited before their agent died: the next one records what became of them, and starts nothing again."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey_agent.ports import AttemptEnd
from monkey_agent.supervisor import leftover_processes
from tests.loops import Run
from tests.unit.monkey_agent.body import Body, until

JOB = f"{1:016x}"


def job(ledger: Path, then: str = "") -> list[str]:
    """Return a job that enters its attempt in a ledger, leaves some of everything, and ends as `then` says."""
    makes = 'echo model > "$MONKEY_OUTPUT_DIR/model"; echo said'
    return ["sh", "-c", f'echo "$MONKEY_ATTEMPT" >> {ledger}; {makes}; {then}']


def lives(place: Path) -> Callable[[], Body]:
    """Return a function that begins the next life of one agent."""
    return lambda: Body(place / "agent")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Return the file in which each execution enters itself."""
    return tmp_path / "ledger"


def test_what_exited_while_the_agent_heard_nothing_is_recorded_by_the_next(
    victim: Callable[..., int], ledger: Path, tmp_path: Path, run: Run
) -> None:
    go = tmp_path / "go"
    agent = victim(job(ledger, f"while ! test -e {go}; do sleep 0.01; done; echo last")[2])
    os.kill(agent, signal.SIGSTOP)
    go.touch()
    asyncio.run(until(lambda: leftover_processes.read_exits(tmp_path / "state")))
    os.kill(agent, signal.SIGKILL)
    asyncio.run(
        until(
            lambda: (
                not leftover_processes._left(tmp_path / "state", leftover_processes._entries(tmp_path / "state"), True)
            )
        )
    )

    async def scenario() -> None:
        body = Body(tmp_path)
        running = await body.start(job(ledger), job=JOB, k=2, ours_since=1)
        outcome = await running.wait()
        assert (outcome.ending, outcome.exit_code, list(outcome.outputs)) == (AttemptEnd.SUCCEEDED, 0, ["model"])
        assert outcome.seconds > 0
        stored = await body.stored(running)
        assert (stored["log/000000"], stored["outputs/model"]) == (b"said\nlast\n", b"model\n")
        running.leave(recorded=True)
        await body.runner.close()

    run(scenario())
    assert ledger.read_text() == "1\n"


@pytest.mark.parametrize(
    ("then", "settings", "reason"),
    [
        ("exit 3", {}, "exit code 3"),
        ("kill -SEGV $$", {}, "killed by SIGSEGV"),
        ("sleep 1000", {"timeout": 0.2}, "timed out after 0.2s"),
    ],
)
def test_failures_are_kept_with_their_reason(
    tmp_path: Path, ledger: Path, run: Run, then: str, settings: dict[str, float], reason: str
) -> None:
    async def scenario() -> None:
        life = lives(tmp_path)
        for k in (1, 2, 3):  # the second is killed as well, before it could record anything
            body = life()
            running = await body.start(job(ledger, then), job=JOB, k=k, ours_since=1, settings=settings)
            outcome = await running.wait()
            assert outcome.ending is AttemptEnd.FAILED
            assert outcome.reason.startswith(reason)
            assert outcome.log_tail == ["said"]
            await body.runner.close()

    run(scenario())
    assert ledger.read_text() == "1\n"


def test_what_somebody_may_have_run_since_is_run_again(tmp_path: Path, ledger: Path, run: Run) -> None:
    async def scenario() -> None:
        life = lives(tmp_path)
        for k, since in ((1, 1), (3, 2), (4, 3)):
            body = life()
            await (await body.start(job(ledger), job=JOB, k=k, ours_since=since)).wait()
            await body.runner.close()

    run(scenario())
    assert ledger.read_text() == "1\n3\n"


def test_what_we_stopped_is_run_again(tmp_path: Path, ledger: Path, run: Run) -> None:
    async def scenario() -> None:
        life = lives(tmp_path)
        body = life()
        running = await body.start(job(ledger, "exec sleep 1000"), job=JOB)
        await until(ledger.exists)
        await running.stop("paused")
        assert (await running.wait()).ending is AttemptEnd.STOPPED
        await body.runner.close()
        body = life()
        assert (await (await body.start(job(ledger), job=JOB, k=2, ours_since=1)).wait()).ending is AttemptEnd.SUCCEEDED
        await body.runner.close()

    run(scenario())
    assert ledger.read_text() == "1\n2\n"


def test_what_was_given_up_is_not_found_again(tmp_path: Path, ledger: Path, run: Run) -> None:
    async def scenario() -> None:
        life = lives(tmp_path)
        for k in (1, 2, 3):
            body = life()
            running = await body.start(job(ledger), job=JOB, k=k, ours_since=1)
            await running.wait()
            if k != 1:
                running.leave(recorded=True)
            await body.runner.close()
        assert not list((tmp_path / "agent" / "state" / "left").iterdir())

    run(scenario())
    assert ledger.read_text() == "1\n3\n"


#: Notes that were cut short, and those with what no exit is.
HALF = [b"", b"[1, 0", b"[1]", b"{}", b'"x"']
FOREIGN = [
    b'"abcd"',
    b"[null, 0, 0.5, 1]",
    b'[1, "0", 0.5, 1]',
    b"[1, 0, [], 1]",
    b"[1, 0, NaN, 1]",
    b"[1, 0, 0.5, true]",
]


@pytest.mark.parametrize("note", [*HALF, *FOREIGN])
def test_a_damaged_note_costs_an_execution_and_no_more(tmp_path: Path, ledger: Path, run: Run, note: bytes) -> None:
    async def scenario() -> None:
        life = lives(tmp_path)
        body = life()
        await (await body.start(job(ledger), job=JOB)).wait()
        await body.runner.close()
        body = life()
        await body.runner.close()
        (tmp_path / "agent" / "state" / "left" / f"{JOB}.1" / "exit").write_bytes(note)
        body = life()
        assert (await (await body.start(job(ledger), job=JOB, k=2, ours_since=1)).wait()).ending is AttemptEnd.SUCCEEDED
        await body.runner.close()

    run(scenario())
    assert ledger.read_text() == "1\n2\n"


def test_secrets_stay_masked(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        for k in (1, 2):
            body = Body(tmp_path, env={**os.environ, "TOKEN": "s3cr3t-s3cr3t"})
            running = await body.start(["sh", "-c", 'echo "<$TOKEN>"'], job=JOB, k=k, ours_since=1, settings=SECRET)
            await running.wait()
            assert (await body.stored(running))["log/000000"] == b"<***>\n"
            await body.runner.close()

    run(scenario())


SECRET = {"secrets": ["TOKEN"]}
