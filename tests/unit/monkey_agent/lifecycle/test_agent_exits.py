"""What the real agent exits with, and what those that start agents make of it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.fleet.agent_state import NO_WORK, TAKEN_BACK, UNFIT
from monkey.store.open import open_store
from monkey_agent.bootstrap import machine_setup
from monkey_stacks.ssh.remote import keep_alive
from tests.bucket import FakeBucket, Refusal

#: Seconds that a test waits for the agent at most.
_PATIENCE = 60
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Return a function that starts an agent on a store of its own, with these further arguments."""
    for name, place in {"HOME": "home", "XDG_STATE_HOME": "state", "XDG_CACHE_HOME": "cache"}.items():
        monkeypatch.setenv(name, str(tmp_path / place))
    (tmp_path / "home").mkdir()

    async def make_store() -> None:
        await (await open_store(str(tmp_path / "store"), begin=True)).close()

    asyncio.run(make_store())

    def start(*arguments: str, store: object = tmp_path / "store") -> subprocess.Popen[str]:
        command = [sys.executable, "-P", "-m", "monkey_agent.command_line", "--store", str(store), "--project", "p"]
        return subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, text=True)

    return start


def read_until(agent: subprocess.Popen[str], words: str) -> None:
    """Read what the agent says, up to a line with these words."""
    assert agent.stderr is not None
    assert any(words in line for line in agent.stderr), f"it never said {words!r}"


def leave_code(agent: subprocess.Popen[str]) -> int:
    """Wait for the agent's end."""
    agent.communicate(timeout=_PATIENCE)
    return agent.returncode


def test_an_agent_without_work_exits_with_0(start: Start, tmp_path: Path) -> None:
    agent = start("--idle-timeout", "0.1", "--state", str(tmp_path / "own"))
    assert leave_code(agent) == NO_WORK == 0
    assert (tmp_path / "own/left-in-peace").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_agent_that_is_told_to_leave_exits_with_75(start: Start, tmp_path: Path, number: int) -> None:
    agent = start("--idle-timeout", "100", "--state", str(tmp_path / "own"))
    read_until(agent, "works for")
    agent.send_signal(number)
    assert leave_code(agent) == TAKEN_BACK == 75
    assert not (tmp_path / "own/left-in-peace").exists(), "after a boot it is to be started again"


def test_an_agent_that_is_replaced_exits_with_0(start: Start, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/drain").touch()
    assert leave_code(start("--idle-timeout", "100", "--state", str(tmp_path / "own"))) == NO_WORK


def test_an_agent_that_cannot_work_here_exits_with_78(start: Start, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    agents = [
        start("--gpus", "77"),
        start("--state", str(tmp_path / "file/own")),
        start("--signers", str(tmp_path / "missing")),
        start(store=tmp_path / "file"),
    ]
    assert [leave_code(agent) for agent in agents] == [UNFIT] * 4 == [78] * 4


def test_an_agent_whose_store_no_url_names_exits_as_for_any_wrong_command_line(start: Start) -> None:
    agent = start(store="nosuch://x")
    assert agent.stderr is not None and "expected a directory or a URL with file://" in agent.stderr.read()
    assert leave_code(agent) == 2


def test_an_agent_beside_another_or_without_a_store_may_be_tried_again(start: Start, tmp_path: Path) -> None:
    one = start("--idle-timeout", "100", "--state", str(tmp_path / "own"))
    read_until(one, "works for")
    assert leave_code(start("--state", str(tmp_path / "own"))) == 1
    assert leave_code(start(store=tmp_path / "nothing")) == 1
    one.kill()
    assert leave_code(one) == -signal.SIGKILL


def test_an_agent_waits_for_a_store_that_is_away_as_it_starts(start: Start, bucket: FakeBucket) -> None:
    async def make_store() -> None:
        await (await open_store(bucket.url(), begin=True)).close()

    asyncio.run(make_store())
    bucket.refusal = Refusal(503, "SlowDown", "come again")
    agents = [start("--idle-timeout", "0.1", "--name", name, store=bucket.url()) for name in "ab"]
    for agent in agents:
        read_until(agent, "the agent waits for it")
    agents[0].send_signal(signal.SIGTERM)
    assert leave_code(agents[0]) == TAKEN_BACK
    bucket.refusal = None
    assert leave_code(agents[1]) == NO_WORK


@pytest.mark.parametrize("text", [keep_alive._UNIT, machine_setup._TEXT], ids=["host", "rented"])
def test_units_heed_the_codes(text: str) -> None:
    lines = text.splitlines()
    assert {"Restart=on-failure", "SuccessExitStatus={taken_back}", "RestartPreventExitStatus={unfit}"} <= set(lines)
