"""SIGINT and SIGTERM while machines are made or taken away: what stays is said, and how to go on."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from monkey.apply.world.world import World
from monkey.cli import session
from monkey.cli.main import run_guarded
from tests.unit.apply.small_project import StillFleet, StillRentedFleet, write_project


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_last_moment_of_the_work_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
) -> None:
    async def work(world: World) -> int:
        os.kill(os.getpid(), number)
        return 0

    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        session.run_in_world(work)
    assert signal.getsignal(signal.SIGTERM) is before


def interrupted(monkeypatch: pytest.MonkeyPatch, root: Path, verb: str, number: int, *, touched: bool) -> int:
    """Have `verb` be cut off by a signal; `touched`: machines that cost were begun."""

    async def work(world: World) -> int:
        world.fleets = {"cloud": StillRentedFleet("cloud", touched=touched), "local": StillFleet()}
        os.kill(os.getpid(), number)
        await asyncio.sleep(60)
        return 0

    inside = session.run_in_world
    write_project(root)
    monkeypatch.chdir(root)
    module = __import__(f"monkey.cli.commands.{verb}", fromlist=["run_in_world"])
    monkeypatch.setattr(module, "run_in_world", lambda _, **__: inside(work))
    return run_guarded([verb, *(["sweep"] if verb == "resume" else [])])


SAYS = "interrupted: what was done to machines of cloud so far stays, and what is there costs money\n"
ON = {
    "apply": "hint: the same command goes on; `monkey destroy --fleet cloud` takes it away\n",
    "resume": "hint: `monkey apply` goes on; `monkey destroy --fleet cloud` takes it away\n",
    "destroy": "hint: the same command goes on\n",
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("verb", ON)
def test_what_machines_stay_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str], verb: str, number: int
) -> None:
    assert interrupted(monkeypatch, tmp_path / "p", verb, number, touched=True) == 130
    assert capfd.readouterr().err.lstrip("\n") == SAYS + ON[verb]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_where_none_were_touched_nothing_more_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str], number: int
) -> None:
    assert interrupted(monkeypatch, tmp_path / "p", "apply", number, touched=False) == 130
    assert capfd.readouterr().err.lstrip("\n") == "interrupted\n"
