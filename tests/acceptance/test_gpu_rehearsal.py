"""The rehearsal on a GPU, as far as it runs without one: on a fake card. And each of its checks can fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gpu import wheels
from tests.gpu.judge import CHECKS

HERE = Path(__file__).parents[1] / "gpu"
GIB = 1 << 30
UUID = "GPU-1"

Line = dict[str, Any]


def edit_lines(path: Path, edit: Callable[[list[Line]], object]) -> None:
    """Edit the lines of a file of JSON lines in place."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    edit(lines)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def judge(evidence: Path) -> tuple[int, list[str]]:
    """Return the exit code, and the lines that say FAILED."""
    done = subprocess.run([sys.executable, HERE / "judge.py", evidence], capture_output=True, text=True)
    assert not done.stderr, done.stderr
    return done.returncode, [line for line in done.stdout.splitlines() if line.startswith("FAILED: ")]


def list_runs() -> Iterator[tuple[str, float, float]]:
    """Yield each process of a rehearsal in which all is well, with its first and last second."""
    yield "toomuch-0", 5, 6
    yield from ((f"whole-{i}", 10 + 20 * i, 28 + 20 * i) for i in range(2))
    yield from ((f"quarter-{i}", 50 + 20 * (i // 4), 68 + 20 * (i // 4)) for i in range(8))
    yield "stranger-0", 90, 102
    yield "beside-0", 93, 94
    yield "late-0", 103, 104


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    """Return the evidence of that rehearsal."""
    ledger: list[Line] = []
    jobs: list[Line] = []
    for name, begin, end in list_runs():
        kind = name.partition("-")[0]
        devices = {"beside": "", "stranger": None}.get(kind, UUID)
        said = {"kind": kind, "job": name, "id": name, "devices": devices}
        ledger += [{**said, "what": "begin", "at": begin}, {**said, "what": "end", "at": end}]
        usage = {"gpu_memory_bytes": 20 * GIB, "gpu_percent": 99.0} if kind == "whole" else {}
        usage = {"gpu_memory_bytes": 2 * GIB, "gpu_percent": 0.0} if kind == "quarter" else usage
        state = "failed" if kind == "toomuch" else "succeeded"
        jobs.append({"noted_as": name, "state": state, "usage": usage, "samples": [begin + 9] if usage else []})
    smi = [
        {
            "at": at / 2,
            "memory_bytes": 20 * GIB if at < 100 else 2 * GIB,
            "percent": 100 if at < 100 else 0,
            "pids": [7],
        }
        for at in range(220)
    ]
    for name, lines in {"ledger": ledger, "smi": smi}.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    card = {"name": "Card", "uuid": UUID, "driver": "1", "memory_bytes": 80 * GIB}
    (tmp_path / "card.json").write_text(json.dumps(card))
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    (tmp_path / "status.txt").write_text("1 job failed: exit code 1\n  GPU memory: (out of memory)\n")
    return tmp_path


def test_evidence_of_a_good_run_passes(evidence: Path) -> None:
    assert judge(evidence) == (0, [])


def set_line(name: str, what: str, **values: Any) -> Callable[[list[Line]], object]:
    """Return an edit of the line at which a process of the ledger begins or ends."""
    return lambda lines: [line.update(values) for line in lines if (line["job"], line["what"]) == (name, what)]


def drop(*names: str) -> Callable[[list[Line]], object]:
    """Return an edit that leaves processes out of the ledger."""
    return lambda lines: [lines.remove(line) for line in lines[:] if line["job"] in names]


def set_all(**values: Any) -> Callable[[list[Line]], object]:
    """Return an edit of all lines."""
    return lambda lines: [line.update(values) for line in lines]


#: A check, the file of evidence that is edited, how, and what is said then.
CASES = [
    ("each job ran once", "ledger", lambda lines: lines.pop(), "late-0: expected it to note its end"),
    ("each job ran once", "ledger", drop("quarter-0"), "expected 8 of quarter, each once, found 7"),
    ("each job ran once", "ledger", lambda lines: lines.append(lines[0]), "2 executions of 1"),
    ("jobs see", "ledger", set_line("whole-0", "begin", devices="0"), "'GPU-1', found '0'"),
    ("jobs see", "ledger", set_line("beside-0", "begin", devices=None), "'', found None"),
    ("four quarters", "ledger", set_line("quarter-7", "begin", at=67), "never more, found 5"),
    ("four quarters", "ledger", drop("quarter-0", "quarter-4"), "found 3"),
    ("a whole job", "ledger", set_line("whole-0", "end", at=31), "found whole-1 beside it"),
    ("a whole job", "ledger", set_line("quarter-0", "begin", at=40), "found quarter-0 beside it"),
    ("the jobs load", "smi", set_all(percent=0), "at most 0 %"),
    ("the jobs load", "smi", set_all(memory_bytes=GIB), "expected jobs to hold 16.0 GiB"),
    ("GPU memory", "smi", set_all(memory_bytes=2 * GIB), "whole-0: expected 1.80 to 2.20 GiB"),
    ("GPU memory", "smi", lambda lines: lines.clear(), "whole-0: expected samples"),
    ("GPU use", "smi", set_all(percent=80), "whole-0: expected 70 to 90 % by nvidia-smi, found 99 %"),
    ("a GPU that a stranger", "smi", set_all(pids=[]), "found none: the agent cannot know"),
    ("a GPU that a stranger", "ledger", set_line("late-0", "begin", at=100), "found it 2.0 s early"),
    ("a GPU that a stranger", "ledger", set_line("beside-0", "end", at=103), "found it later"),
]


@pytest.mark.parametrize(("check", "file", "edit", "said"), CASES)
def test_each_check_can_fail(
    evidence: Path, check: str, file: str, edit: Callable[[list[Line]], object], said: str
) -> None:
    edit_lines(evidence / f"{file}.jsonl", edit)
    code, failed = judge(evidence)
    assert code == 1
    [line] = [line for line in failed if line.startswith(f"FAILED: {check}")]
    assert said in line


def test_a_reason_without_gpu_memory_fails(evidence: Path) -> None:
    (evidence / "status.txt").write_text("1 job failed: exit code 1\n  Killed\n")
    assert judge(evidence) == (
        1,
        [
            "FAILED: too large an allocation fails, and the reason says GPU memory: "
            "expected `monkey status` to say 'GPU memory', found: 1 job failed: exit code 1 Killed (and 1 more)"
        ],
    )


def test_all_checks_are_seen_to_fail() -> None:
    tried = {*(case[0] for case in CASES), "too large an allocation"}
    assert all(any(name.startswith(each) for each in tried) for name in CHECKS)


def test_more_than_64_mebibytes_do_not_travel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert wheels.check_load(tmp_path) == 0
    with (tmp_path / "large.whl").open("wb") as large:
        large.truncate(wheels.LIMIT)
    assert wheels.check_load(tmp_path) == 1
    assert "expected at most 64 MiB" in capsys.readouterr().err


def test_a_bare_machine_needs_the_wheels(tmp_path: Path) -> None:
    words = {**os.environ, "OUT": str(tmp_path), "PYTHON": sys.executable, "WHEELS": str(tmp_path / "none")}
    done = subprocess.run(["sh", HERE / "rehearsal.sh"], env=words, capture_output=True, text=True)
    assert done.returncode == 1 and "found none: run 'sh " in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.needs("gcc")
@pytest.mark.needs("mount")
def test_a_dry_run_passes_each_check(tmp_path: Path) -> None:
    """All but the card and its driver is real. A dry run that shows five jobs at once does not pass."""
    words = {**os.environ, "OUT": str(tmp_path), "PYTHON": sys.executable, "WHEELS": str(tmp_path / "none")}
    dry_run = ["sh", HERE / "rehearsal.sh", "--dry-run"]
    done = subprocess.run(dry_run, env=words, capture_output=True, text=True, timeout=900)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert lines[0] == "dry run: the card, its driver, NVML and nvidia-smi are fake"
    assert lines[-1] == "card: Fake GPU, 80.0 GiB, driver 0 (fake)"
    assert [line for line in lines if line.startswith("ok: ")] == [f"ok: {name}" for name in CHECKS]
    found = tmp_path / "evidence"
    assert judge(found) == (0, []), "the evidence can be judged again"
    edit_lines(found / "ledger.jsonl", begin_one_early)
    code, failed = judge(found)
    assert code == 1 and "4 quarters at once, and never more, found 5" in failed[0]


def begin_one_early(lines: list[Line]) -> None:
    """Let a quarter of the second four begin a second before the first four end."""
    quarters = [line for line in lines if line["kind"] == "quarter"]
    first = min(line["at"] for line in quarters if line["what"] == "end")
    later = [line for line in quarters if line["what"] == "begin" and line["at"] > first]
    later[0]["at"] = first - 1
