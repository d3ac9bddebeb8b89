"""Jobs that follow others: each begins once, when the one before it has exited by itself, or when that is asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

from monkey_agent.supervisor.process import SupervisedProcess
from tests.loops import Run
from tests.unit.monkey_agent.supervisor.test_requests import GOOD, Client


class Line(Client):
    """A supervisor with jobs that wait for their turn."""

    def line_up(self, name: str, after: SupervisedProcess | None) -> SupervisedProcess:
        """Launch a job that appends its name to a file; one that follows none waits for a file to appear."""
        command = f"echo {name} >> {self.place}/order"
        if after is None:
            command = f"while ! [ -e {self.place}/go ]; do sleep 0.01; done; {command}"
        asked = {**GOOD, "argv": ["sh", "-c", command], "log": str(self.place / f"{name}.log")}
        return self.client.launch(**asked, after=after)

    def go(self) -> None:
        """Let the first of the line exit."""
        (self.place / "go").touch()

    def read_order(self) -> list[str]:
        """Return the names of those that ran."""
        file = self.place / "order"
        return file.read_text().split() if file.exists() else []


async def wait(process: SupervisedProcess) -> tuple[str, int]:
    """Return how a job ended."""
    how = await asyncio.wait_for(process.ended, 30)
    return how.kind, how.code


def test_followers_begin_one_by_one_without_being_asked(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        async with Line(tmp_path) as line:
            first = line.line_up("first", None)
            second = line.line_up("second", first)
            third = line.line_up("third", second)
            assert await asyncio.wait_for(second.active(), 30) == 0.0, "it has not begun"
            assert not second.begun and not line.read_order()
            line.go()
            assert [await wait(one) for one in (first, second, third)] == [("ended", 0)] * 3
            assert second.begun and third.begun
            assert line.read_order() == ["first", "second", "third"]
            await line.check()

    run(scenario())


def test_follower_of_a_job_that_was_killed_begins_when_that_is_asked_and_once(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        async with Line(tmp_path) as line:
            first = line.line_up("first", None)
            second = line.line_up("second", first)
            first.kill()
            assert (await wait(first))[0] == "ended"
            await line.check()
            assert not second.begun and not line.read_order(), "its slot may be another's now"
            second.begin()
            line.client.tell("begin", second.key)
            assert await wait(second) == ("ended", 0)
            await line.check()
            assert line.read_order() == ["second"]

    run(scenario())


def test_follower_that_is_frozen_begins_once_it_is_thawed_and_asked(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        async with Line(tmp_path) as line:
            first = line.line_up("first", None)
            second = line.line_up("second", first)
            second.freeze()
            line.go()
            assert await wait(first) == ("ended", 0)
            second.begin()
            await line.check()
            assert line.read_order() == ["first"], "nobody knows whether its claim holds"
            second.thaw()
            assert await wait(second) == ("ended", 0)
            assert line.read_order() == ["first", "second"]

    run(scenario())


def test_follower_that_is_given_up_never_begins(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        async with Line(tmp_path) as line:
            first = line.line_up("first", None)
            second = line.line_up("second", first)
            second.kill()
            assert (await wait(second))[0] == "refused"
            line.go()
            assert await wait(first) == ("ended", 0)
            await line.check()
            assert line.read_order() == ["first"]

    run(scenario())


def test_number_of_a_job_that_waits_is_no_other_jobs(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        async with Line(tmp_path) as line:
            first = line.line_up("first", None)
            second = line.line_up("second", first)
            log = str(tmp_path / "log")
            line.client.tell(
                "spawn", second.key, 0, "x", ["sh", "-c", f"echo x >> {tmp_path}/order"], 0, {}, "/", log, 0
            )
            await line.check()
            line.go()
            assert await wait(second) == ("ended", 0)
            assert line.read_order() == ["first", "second"]

    run(scenario())
