"""What `monkey status` says of syncs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monkey.cli.render.syncs.sync_lines import format_syncs, serialize_syncs
from monkey.cli.terminal.text import Terminal
from monkey.protocol.status.sync_beat import SyncBeat

A, D = "abc1234567" + "0" * 30, "def5678901" + "0" * 30
NOW = 100_000.0
BEAT = SyncBeat(
    *("https://host/r.git", "main", "head1", 60.0, 1000.0),
    at=NOW - 20,
    looked=NOW - 30,
    seen=A,
    applied=A,
    applied_at=NOW - 184,
    outcome="applied",
)
APPLIED = "git: main abc1234567 applied 3m04s ago by sync on head1"


def line(beat: SyncBeat) -> str:
    [found] = format_syncs([beat], Terminal(), NOW)
    return found


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({}, ""),
        ({"problem": "sweep b: stays cancelled"}, "; sweep b: stays cancelled"),
        ({"outcome": "refused", "problem": "sweep b: not ours"}, "; refused: sweep b: not ours"),
        (
            {"outcome": "refused", "seen": D, "problem": "specs/a.yaml:2:1: x"},
            "; def5678901 refused: specs/a.yaml:2:1: x",
        ),
        ({"outcome": "failed", "seen": D, "problem": "the store is away"}, "; def5678901 failed: the store is away"),
        ({"outcome": "applying", "seen": D, "since": NOW - 5}, "; def5678901 is being applied for 5.0s"),
        ({"outcome": "rewritten", "seen": D, "since": NOW - 5, "problem": "no"}, "; def5678901 refused for 5.0s: no"),
        ({"outcome": "gone", "since": NOW - 5}, "; branch main is gone for 5.0s: what was applied stays"),
        ({"outcome": "away", "since": NOW - 5, "problem": "fatal: x"}, "; the remote is away for 5.0s: fatal: x"),
        ({"at": NOW - 200}, "; it is dead: no heartbeat for 3m20s (`monkey sync --forget` forgets it)"),
        ({"at": NOW - 200, "left": True}, "; it was stopped 3m20s ago"),
        ({"at": NOW - 200, "left": True, "interval": 0.0}, "; it looked once, and ended 3m20s ago"),
        ({"previews": "pull request 3"}, "; previews: pull request 3"),
        (
            {"at": NOW, "looked": NOW - 700, "since": NOW - 700, "outcome": "away", "problem": "fatal: x"},
            "; the remote is away for 11m40s: fatal: x",
        ),
        ({"at": NOW, "looked": NOW - 700, "since": NOW - 900}, "; its last look was 11m40s ago"),
    ],
)
def test_each_state_is_said(change: dict[str, object], more: str) -> None:
    assert line(replace(BEAT, **change)) == APPLIED + more


def test_what_was_never_applied_and_several_remotes() -> None:
    assert line(replace(BEAT, applied="")) == "git: main: nothing was applied yet by sync on head1"
    two = format_syncs([BEAT, replace(BEAT, remote="git@x:y.git")], Terminal(), NOW)
    assert two[0].startswith("git https://host/r.git: main") and two[1].startswith("git git@x:y.git: main")


def test_hostile_text_stays_one_printable_line() -> None:
    evil = replace(BEAT, branch="m\x1b[2J", host="h\nx", outcome="failed", problem="\x1b]0;x\x07" + "y" * 900)
    shown = line(evil)
    assert "\x1b" not in shown and "\n" not in shown and len(shown) < 700


def test_what_is_too_long_is_cut_between_its_parts() -> None:
    problem = "; ".join(f"sweep {i}: {'y' * 150}" for i in range(4))
    assert line(replace(BEAT, problem=problem)) == f"{APPLIED}; {'; '.join(problem.split('; ')[:3])}; …"
    assert line(replace(BEAT, previews="z" * 900)) == f"{APPLIED}; previews: {'z' * 500}…"


def test_programs_get_all_fields_and_who_is_dead() -> None:
    assert serialize_syncs([BEAT], NOW)[0]["dead"] is False
    assert serialize_syncs([BEAT], NOW + 1000)[0] | {"at": 0} == {
        "remote": "https://host/r.git",
        "branch": "main",
        "host": "head1",
        "interval": 60.0,
        "began": 1000.0,
        "at": 0,
        "looked": NOW - 30,
        "seen": A,
        "applied": A,
        "applied_at": NOW - 184,
        "outcome": "applied",
        "since": 0.0,
        "problem": "",
        "previews": "",
        "left": False,
        "dead": True,
    }
