"""Requests and jobs that are not what they should be: each fails that one job with a reason, and ends no neighbour."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

from monkey.processes import process_tree
from monkey_agent.machine import MachineClock
from monkey_agent.ports import AttemptEnd
from monkey_agent.supervisor.process import SupervisedProcess
from monkey_agent.supervisor.supervisor_client import SupervisorClient
from tests.loops import Run
from tests.unit.monkey_agent.body import STAY, Body, alive, killed_after, pids, supervisor_of, until

#: What an attempt is launched with, and values that none of it can have.
GOOD: dict[str, Any] = {"name": "job", "argv": ["sleep", "0"], "base": 0, "env": {}, "cwd": "/", "log": "log"}
WRONG: dict[str, list[Any]] = {
    "name": [5, None, b"job", "\ud800", ["job"]],
    "argv": [[], 5, None, [1], ["a\0b"], [[]], {}, ["no-such-program"]],
    "base": [9, -1, None, "x", []],
    "env": [{"A": 1}, {1: "A"}, {"A": "\ud800"}, {"A": "a\0b"}, {"A=B": "x"}, [], None, "x"],
    "cwd": ["/no/such/directory", "\0", None, 1.5, []],
    "log": ["/no/such/directory/log", "/", "\0", None, []],
}
CASES = [(field, value) for field, values in WRONG.items() for value in values]
#: Messages that are none, but for the key of the neighbour.
MESSAGES: list[tuple[Any, ...]] = [
    *((), (5,), ("no_such",), (None, 1), ("spawn",), ("spawn", 7), ("spawn", [], 0, "x", [], 0, {}, "/", "log")),
    *(("spawn", 1.5, 0, "x", ["true"], 0, {}, "/", "log"), ("spawn", 70, [], "x", ["true"], 0, {}, "/", "log")),
    *(("base",), ("base", [], {}), ("base", 3, {1: 2}), ("base", 3, None), ("signal",), ("signal", [], 9)),
    *(("signal", 1, "x"), ("signal", 1, -5), ("signal", 1, 10**30), ("begin", {}), ("kill", []), ("kill", 10**30)),
    *(("freeze", []), ("thaw", {}), ("active", []), ("mains", 1), ("renew", 1), ("__init__",), ("spawn", *[0] * 99)),
]


class Client:
    """A supervisor with one neighbour that runs."""

    def __init__(self, place: Path) -> None:
        clock = MachineClock()
        self.place, self.client = place, SupervisorClient(place, clock)
        self.client.renew(clock.now() + 3600)

    async def __aenter__(self) -> Self:
        """Start both."""
        await self.client.start()
        self.client.base({"PATH": "/usr/bin:/bin"})
        self.neighbour = self.launch(argv=["sh", "-c", STAY.format(self.place / "neighbour")])
        (self.pid,) = await until(lambda: pids(self.place / "neighbour"))
        self.supervisor = supervisor_of(self.place)
        return self

    async def __aexit__(self, *_: object) -> None:
        """End both."""
        await self.client.close()

    def launch(self, **changed: Any) -> SupervisedProcess:
        """Launch an attempt, but for what is changed of it."""
        asked = {**GOOD, "log": str(self.place / "log"), **changed}
        return self.client.launch(**asked, after=None)

    async def check(self) -> None:
        """See that the supervisor is the same, runs the neighbour still, and starts another job."""
        how = await asyncio.wait_for(self.launch().ended, 30)
        assert (how.kind, how.code) == ("ended", 0) and not self.neighbour.ended.done()
        assert alive(self.pid) and supervisor_of(self.place) == self.supervisor


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "at once"])
def test_what_cannot_be_started_fails_alone_with_a_reason(tmp_path: Path, run: Run, together: bool) -> None:
    async def scenario() -> None:
        async with Client(tmp_path) as client:
            asked = []
            for field, value in CASES:
                asked.append(client.launch(**{field: value}))
                if not together:
                    await asyncio.wait([asked[-1].ended], timeout=30)
            for (field, value), process in zip(CASES, asked, strict=True):
                how = await asyncio.wait_for(process.ended, 30)
                assert how.kind == "failed" and (how.code or how.file), (field, value, how)
            await client.check()

    run(scenario())


def test_job_that_follows_what_is_none_fails_alone_with_a_reason(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        async with Client(tmp_path) as client:
            for key in ("1", None, 1.5, [], True):
                before: Any = SimpleNamespace(key=key)
                process = client.client.launch(**GOOD, after=before)
                how = await asyncio.wait_for(process.ended, 30)
                assert how.kind == "failed" and "no job can have the number" in (how.file or ""), (key, how)
            await client.check()

    run(scenario())


def test_messages_that_are_none_are_passed_over(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        async with Client(tmp_path) as client:
            for message in MESSAGES:
                client.client.tell(*message)
            # The neighbour's own number; and bytes that are no message, behind their length.
            client.client.tell("spawn", client.neighbour.key, 0, "x", ["true"], 0, {}, "/", str(tmp_path / "log"))
            assert client.client._socket is not None and not client.client._outbox
            client.client._socket.send((3).to_bytes(4, "little") + b"\xff\xff\xff")
            await client.check()

    run(scenario())


def test_what_cannot_even_be_told_is_no_job(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        async with Client(tmp_path) as client:
            for field in GOOD:
                with pytest.raises(ValueError, match="marshal"):
                    client.launch(**{field: object()})
            await client.check()

    run(scenario())


@pytest.mark.skipif(not process_tree.HAS_PROC, reason="needs /proc")
@pytest.mark.parametrize("key", ["²", "٣", "9" * 5000, "", "1:2", "-1", "\udcff"])
def test_a_process_that_says_that_it_is_whose_it_is_not_ends_no_supervisor(
    body: Body, run: Run, key: str, tmp_path: Path
) -> None:
    """A job hands its children any environment that it likes."""

    async def scenario() -> None:
        with killed_after(tmp_path / "neighbour", tmp_path / "marked"):
            neighbour = await body.start(["sh", "-c", STAY.format(tmp_path / "neighbour")])
            (pid,) = await until(lambda: pids(tmp_path / "neighbour"))
            supervisor = supervisor_of(body.state)
            mark = f"{body.state}:{key}".encode(errors="surrogateescape")
            orphan = (
                "import os, subprocess, time\n"
                f"subprocess.Popen(['setsid', 'sh', '-c', {STAY.format(tmp_path / 'marked')!r}],"
                f" env={{**os.environb, {process_tree.MARK.encode()!r}: {mark!r}}})\n"
                f"while not os.path.exists({str(tmp_path / 'marked')!r}): time.sleep(0.01)\n"
            )
            escaped = orphan.replace("{", "{{").replace("}", "}}")
            outcome = await asyncio.wait_for(body.run([sys.executable, "-c", escaped]), 60)
            assert outcome.ending is AttemptEnd.SUCCEEDED
            assert alive(pid) and supervisor_of(body.state) == supervisor
            await neighbour.stop("the test is over")
            await neighbour.wait()
            neighbour.leave(recorded=True)

    run(scenario())
