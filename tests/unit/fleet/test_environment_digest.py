"""What an agent was started with: what is compared, and what is never written down."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from monkey.fleet.environment_digest import (
    _DIGEST_FILE,
    compare_environment,
    compare_settings,
    record_environment,
    record_settings,
)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Return the directory of a living agent, which is us, that has said what it was started with."""
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        record_environment(tmp_path, "local/me/1")
        yield tmp_path


def differing(home: Path) -> tuple[str, ...]:
    found = compare_environment(home)
    assert found is not None and found.agent == "local/me/1"
    return found.differs


def test_variables_that_jobs_get_are_told_by_name(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert differing(home) == ()
    monkeypatch.setenv("DATA", "/new")
    monkeypatch.setenv("PATH", "/elsewhere")
    monkeypatch.delenv("HOME", raising=False)
    assert differing(home) == ("DATA", "HOME", "PATH")


def test_another_python_differs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/other/python")
    assert differing(home) == ("the Python",)


@pytest.mark.parametrize("name", ["PWD", "_", "SSH_CONNECTION", "TERM", "SHLVL", "TMUX_PANE", "MONKEY_DEBUG"])
def test_another_window_makes_no_difference(home: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "another")
    assert differing(home) == ()


def test_no_value_is_written_down_and_nobody_else_may_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "hunter2-hunter2")
    record_environment(home, "local/me/1")
    first = (home / _DIGEST_FILE).read_text()
    assert "hunter2" not in first and "API_TOKEN" in first
    assert (home / _DIGEST_FILE).stat().st_mode & 0o077 == 0
    record_environment(home, "local/me/1")
    again = json.loads((home / _DIGEST_FILE).read_text())["digests"]
    assert again["API_TOKEN"] != json.loads(first)["digests"]["API_TOKEN"], "equal values could be told across agents"


def test_values_that_are_no_text_are_compared(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD", os.fsdecode(b"\xff\xfe"))
    record_environment(home, "local/me/1")
    assert differing(home) == ()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"agent": 1, "pid": "x"}'])
def test_what_an_agent_has_not_told_is_not_guessed(home: Path, content: str) -> None:
    (home / _DIGEST_FILE).write_text(content)
    assert compare_environment(home) is None
    (home / _DIGEST_FILE).unlink()
    assert compare_environment(home) is None


def test_what_an_earlier_life_told_does_not_count(home: Path) -> None:
    (home / "lock").write_text("1\n")
    assert compare_environment(home) is None


def test_settings_are_compared_with_those_of_the_living_agent(home: Path) -> None:
    ours = {"max_slots": "1", "lease": "90"}
    assert compare_settings(home, ours) == (), "a person started it"
    record_settings(home, os.getpid(), {"max_slots": "2", "lease": "90"})
    assert compare_settings(home, ours) == ("max_slots",)
    record_settings(home, os.getpid() + 1, {"max_slots": "2"})
    assert compare_settings(home, ours) == (), "an earlier life had them"
    (home / "settings.json").write_text("[]")
    assert compare_settings(home, ours) == ()
