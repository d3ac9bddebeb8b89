"""The local fleet, with real processes: who lives, who has died, where it all lies."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sys
import time
from pathlib import Path

import pytest

from monkey.errors import FleetError
from monkey.fleet.agent_state import is_agent_alive, make_host_name, read_agent_pid
from monkey.fleet.fleet_port import keep_silent
from monkey.fleet.fleet_records import FleetForecast, FleetWork
from monkey.fleet.local_fleet import LocalFleet
from monkey.fleet.user_directories import locate_agent_state, locate_state_home


class Scripted(LocalFleet):
    """The local fleet with an agent of a few lines of Python in place of the real one."""

    script = ""

    def _command(self) -> list[str]:
        return [sys.executable, "-I", "-S", "-c", self.script]


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Scripted("/store", "project")


def wait_for_death(fleet: LocalFleet) -> None:
    deadline = time.monotonic() + 20
    while fleet._running() and time.monotonic() < deadline:
        time.sleep(0.01)


def test_nobody_lives_where_there_is_nothing(fleet: Scripted) -> None:
    assert fleet.count_agents() == 0 and not asyncio.run(fleet.instances())
    assert not asyncio.run(fleet.has_workers())


def test_one_agent_is_enough_and_stays(fleet: Scripted) -> None:
    assert asyncio.run(fleet.preview(FleetWork(0))) == FleetForecast(0, 0)
    assert asyncio.run(fleet.preview(FleetWork(1000))) == FleetForecast(0, 1)
    fleet.directory.mkdir(parents=True)
    with (fleet.directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert asyncio.run(fleet.preview(FleetWork(0))) == FleetForecast(1, 1)


def test_a_held_lock_is_a_living_agent(fleet: Scripted) -> None:
    fleet.directory.mkdir(parents=True)
    with (fleet.directory / "lock").open("w") as lock:
        assert not is_agent_alive(fleet.directory)
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        assert is_agent_alive(fleet.directory)
        assert read_agent_pid(fleet.directory) == os.getpid()
        asyncio.run(fleet.converge(FleetWork(1), keep_silent))
        assert not fleet._running(), "a second agent was started beside a living one"
    assert not is_agent_alive(fleet.directory)


def test_started_agent_is_detached_and_logs(fleet: Scripted) -> None:
    stay = "while not os.path.exists('go'): time.sleep(0.01)"
    said = "print(os.getsid(0) == os.getpid(), os.getcwd(), sys.stdin.read() == '')"
    fleet.script = f"import os, sys, time; {said}\n{stay}"
    asyncio.run(fleet.converge(FleetWork(1), keep_silent))
    assert asyncio.run(fleet.has_workers())
    (fleet.directory / "go").touch()
    wait_for_death(fleet)
    assert not asyncio.run(fleet.has_workers()), "an agent that ended well has left; that is no error"
    assert fleet.log.read_text().split() == ["True", str(fleet.directory), "True"]
    assert fleet.log.stat().st_mode & 0o077 == 0


def test_agent_that_waits_at_its_gate_begins_when_it_is_told(fleet: Scripted) -> None:
    fleet.script = "import sys; log = sys.stdin.read(); '--gate' in sys.argv and open(log, 'a').write('let in')"
    fleet.prepare()
    waiting = fleet._waiting
    assert waiting is not None and not asyncio.run(fleet.has_workers()), "it works for nobody yet"
    assert not fleet.directory.exists(), "nothing was decided yet"
    asyncio.run(fleet.converge(FleetWork(1), keep_silent))
    assert fleet._started is waiting
    wait_for_death(fleet)
    assert fleet.log.read_text() == "let in"


def test_agent_that_waits_is_dismissed(fleet: Scripted) -> None:
    fleet.script = "import sys; sys.stdin.read()"
    fleet.prepare()
    assert fleet._waiting is not None
    pid = fleet._waiting.pid
    fleet.close()
    assert not Path(f"/proc/{pid}").exists()
    fleet.close()


def test_another_is_started_where_the_one_that_waited_died(fleet: Scripted) -> None:
    fleet.script = "import sys; '--gate' in sys.argv and sys.exit(3); print('works')"
    fleet.prepare()
    assert fleet._waiting is not None
    fleet._waiting.wait()
    asyncio.run(fleet.converge(FleetWork(1), keep_silent))
    wait_for_death(fleet)
    assert fleet.log.read_text().split() == ["works"]


def test_death_shows_the_last_words_of_this_life_alone(fleet: Scripted) -> None:
    fleet.directory.mkdir(parents=True)
    fleet.log.write_text("an earlier life\n")
    fleet.script = "import sys; sys.exit('no such \\x1b[31mstore')"
    asyncio.run(fleet.converge(FleetWork(1), keep_silent))
    wait_for_death(fleet)
    with pytest.raises(FleetError, match=r"exit code 1(?s:.)*no such") as caught:
        asyncio.run(fleet.has_workers())
    assert "an earlier life" not in caught.value.message


def test_destroy_asks_the_agent_to_leave(fleet: Scripted) -> None:
    asyncio.run(fleet.destroy(keep_silent))  # nobody is there: nothing to do
    fleet.script = (
        "import fcntl, os, signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(75)); "
        "lock = open('lock', 'w'); fcntl.flock(lock, 2); lock.write(str(os.getpid())); lock.flush(); time.sleep(60)"
    )
    asyncio.run(fleet.converge(FleetWork(1), keep_silent))
    deadline = time.monotonic() + 20
    while read_agent_pid(fleet.directory) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    asyncio.run(fleet.destroy(keep_silent))
    wait_for_death(fleet)
    assert not asyncio.run(fleet.has_workers()) and not is_agent_alive(fleet.directory)


def test_killed_agent_is_only_gone(fleet: Scripted) -> None:
    fleet.script = "import os; os.kill(os.getpid(), 9)"
    asyncio.run(fleet.converge(FleetWork(1), keep_silent))
    wait_for_death(fleet)
    assert not asyncio.run(fleet.has_workers())


def test_directory_that_cannot_be_made_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(FleetError, match="cannot be written") as caught:
        asyncio.run(LocalFleet("/store", "project").converge(FleetWork(1), keep_silent))
    assert "XDG_STATE_HOME" in (caught.value.hint or "")


def test_state_lies_by_store_and_project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    places = {locate_agent_state(url, project, "local", "me") for url in ("/a", "/b") for project in ("p", "q")}
    assert len(places) == 4
    assert all(place.is_relative_to(tmp_path / "monkey") for place in places)
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    (tmp_path / "me").mkdir()
    assert locate_state_home() == tmp_path / "me" / ".local" / "state"
    monkeypatch.setenv("HOME", str(tmp_path / "new"))
    assert locate_state_home() == tmp_path / "new" / ".local" / "state"
    for missing in ("", "/nonexistent/of/nobody"):
        monkeypatch.setenv("HOME", missing)
        assert locate_state_home() == Path(f"/tmp/monkey-{os.getuid()}/.local/state")
    assert make_host_name() and "/" not in make_host_name()
