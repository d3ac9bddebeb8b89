"""An exception that nobody expected ends what it came from, alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import StoreUnavailable
from monkey_agent.ports import AttemptEnd
from monkey_agent.unexpected_errors import UnexpectedErrors
from tests.loops import Run
from tests.unit.monkey_agent.body import STAY, Body, alive, pids, supervisor_of, until


@pytest.mark.parametrize("env", [{"A": 1}, {"A": "\ud800"}, {"A": "a\0b"}, {"A=B": "x"}, {1: "A"}], ids=str)
def test_an_environment_that_is_none_fails_its_job_and_leaves_the_supervisor(
    body: Body, run: Run, env: dict[Any, Any], tmp_path: Path
) -> None:
    async def scenario() -> None:
        neighbour = await body.start(["sh", "-c", STAY.format(tmp_path / "neighbour")])
        (pid,) = await until(lambda: pids(tmp_path / "neighbour"))
        supervisor = supervisor_of(body.state)
        outcome = await asyncio.wait_for(body.run(["true"], env=env), 20)
        assert outcome.ending is AttemptEnd.FAILED and "could not be started" in outcome.reason
        assert alive(pid) and supervisor_of(body.state) == supervisor
        assert (await body.run(["true"])).ending is AttemptEnd.SUCCEEDED
        await neighbour.stop("the test is over")
        await neighbour.wait()
        neighbour.leave(recorded=True)

    run(scenario())


def test_a_mishap_is_told_once_with_its_traceback() -> None:
    said: list[str] = []
    errors = UnexpectedErrors(said.append)
    for _ in range(3):
        with errors.alone("job 1"):
            raise ValueError("x" * 1_000)
    assert len(said) == 1 and said[0].startswith("job 1: ValueError: xxx") and "test_unexpected_errors.py" in said[0]
    assert len(errors.tell("job 2", OSError(5, "gone"))) < 300 and len(said) == 2
    with pytest.raises(StoreUnavailable), errors.alone("job 1"):
        raise StoreUnavailable
