"""The README's first command, as a newcomer pastes it: a fresh clone, an empty home, a Python with nothing in it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
#: Seconds for all of it: a venv, the install, numpy for the jobs, 36 jobs, the table.
LIMIT = 300


def newcomer(home: Path) -> dict[str, str]:
    """Return an environment without a trace of monkey, of this test's venv or of anybody's settings."""
    ours = {"VIRTUAL_ENV", "HOME", "PYTHONPATH", "PYTHONHOME"}
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MONKEY_", "XDG_")) and name not in ours
    }
    venv = str(Path(os.environ.get("VIRTUAL_ENV") or ROOT / ".venv") / "bin")
    env["PATH"] = os.pathsep.join(part for part in env["PATH"].split(os.pathsep) if part != venv)
    return {**env, "HOME": str(home)}


@pytest.fixture
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clone the repository as it is now, changes that are not committed included."""
    there = tmp_path_factory.mktemp("newcomer") / "monkey"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (there / name).parent.mkdir(parents=True, exist_ok=True)
            (there / name).write_bytes((ROOT / name).read_bytes())
    git = ["git", "-c", "user.name=newcomer", "-c", "user.email=newcomer@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "a clone"]):
        subprocess.run([*git, *words], cwd=there, check=True)
    return there


@pytest.fixture
def pasted(
    clone: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    """Paste the first command, and return how it ended and in which environment."""
    section = (ROOT / "README.md").read_text().split("\n## Quick start\n")[1]
    command = re.findall(r"^```bash\n(.*)\n```$", section, re.MULTILINE)[0]
    env = newcomer(tmp_path_factory.mktemp("home"))
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=clone,
        env=env,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        stdin=subprocess.DEVNULL,
    )
    return done, env


@pytest.mark.slow
def test_first_command_trains_and_ends_in_the_table_and_the_second_apply_does_nothing(
    clone: Path, pasted: tuple[subprocess.CompletedProcess[str], dict[str, str]]
) -> None:
    done, env = pasted
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    for word in ("val_accuracy", "test_accuracy", "hidden"):
        assert word in done.stdout[-8000:], "the table of results does not end it"
    rows = ask(clone, env, "results", "digits", "--json")
    assert len(rows) == 36
    assert {row["state"] for row in rows} == {"succeeded"}
    best = max(row["metrics"]["test_accuracy"] for row in rows)
    assert best > 0.95
    accuracies = [row["metrics"]["val_accuracy"] for row in rows]
    assert accuracies == sorted(accuracies, reverse=True), "best first"
    plan = ask(clone, env, "plan", "specs/digits.yaml", "--json")
    assert plan["sweeps"][0]["jobs"] == {"new": 0, "stale": 0, "kept": 36, "removed": 0}


def ask(clone: Path, env: dict[str, str], *words: str) -> Any:
    """Ask the newcomer's monkey for JSON."""
    done = subprocess.run([".venv/bin/monkey", *words], cwd=clone, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
