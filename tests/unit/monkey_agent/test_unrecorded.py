"""Notes of ends: what a killed agent had found out is not found out again."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.protocol.entries import Claim, End, Ended, Torn
from monkey.protocol.log import Log
from monkey_agent import unrecorded
from monkey_agent.unrecorded import FilePaper, Unrecorded

LIVES = ("f/here/b1", "f/here/b2", "f/here/b3")
JOB = "0" * 16


def claim(agent: str = LIVES[0], nonce: int = 7) -> Claim:
    return Claim(agent, nonce, 1, "sweep")


def end(agent: str = LIVES[0], nonce: int = 7) -> End:
    return End(Ended.SUCCEEDED, agent, nonce, "sweep", exit_code=0, out=1, metrics={"loss": {"last": 0.5}})


def log(*entries: Claim | End | Torn) -> Log:
    made = Log(f"jobs/{JOB}/")
    made.entries.extend(entries)
    return made


def life(path: Path) -> Unrecorded:
    return Unrecorded(FilePaper(path), LIVES.__contains__)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "unrecorded"


def test_what_was_noted_is_found_by_the_next_life(path: Path) -> None:
    assert life(path).find(JOB, log(claim())) is None
    life(path).note(JOB, 1, end())
    for _ in range(2):  # it is found by each until it is recorded
        later = life(path)
        assert later.find(JOB, log(claim(), claim(LIVES[1]))) == end()
        assert later.find(JOB, log(claim(), claim(LIVES[1]), claim(LIVES[2], 1))) == end()
        assert later.find("1" * 16, log(claim())) is None
    later.recorded(JOB)
    later.note("1" * 16, 1, end())
    assert life(path).find(JOB, log(claim(), claim(LIVES[1]))) is None


@pytest.mark.parametrize(
    "entries",
    [
        (claim(nonce=6), claim(LIVES[1])),
        (claim("f/there/b1"), claim(LIVES[1])),
        (Torn("jobs/1"), claim(LIVES[1])),
        (claim(), claim("f/there/b1"), claim(LIVES[1])),
        (claim(), end(), claim(LIVES[1])),
        (),
    ],
    ids=["another claim", "another agent", "torn", "somebody had it since", "recorded since", "an empty log"],
)
def test_nothing_is_found_where_it_may_have_run_since(path: Path, entries: tuple[Claim | End, ...]) -> None:
    life(path).note(JOB, 1, end())
    assert life(path).find(JOB, log(*entries)) is None


@pytest.mark.parametrize("junk", [b"", b"+", b"+x\n", b"+job one {}\n", b"\xff\xff\n-\n", b'+0 1 {"kind":"end"'])
def test_damage_costs_a_note_and_no_more(path: Path, junk: bytes) -> None:
    path.write_bytes(junk)
    life(path).note(JOB, 1, end())
    data = path.read_bytes()
    assert life(path).find(JOB, log(claim())) == end()
    for cut in range(len(junk), len(data)):
        path.write_bytes(data[:cut])
        assert life(path).find(JOB, log(claim())) is None


def test_the_file_does_not_grow_with_the_jobs(path: Path) -> None:
    notes = life(path)
    notes.note(JOB, 1, end())
    for n in range(1, 5000):
        notes.note(f"{n:016x}", 1, end())
        notes.recorded(f"{n:016x}")
        assert path.stat().st_size < 2 * unrecorded.ENOUGH
    assert life(path).find(JOB, log(claim())) == end(), "what waits is kept"
    assert len(life(path)._open) < 10


def test_a_disk_that_is_full_only_costs_the_note(tmp_path: Path) -> None:
    notes = life(tmp_path / "missing" / "unrecorded")
    notes.note(JOB, 1, end())
    notes.recorded(JOB)
    assert life(tmp_path / "missing" / "unrecorded").find(JOB, log(claim())) is None
