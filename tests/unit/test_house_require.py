"""A service that is missing skips its test at home, and fails it where it must be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEST = "def test_it(require):\n    assert require({name!r})\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "required", "said"),
    [
        ("git", "", "1 passed"),
        ("git", "git", "1 passed"),
        ("no-such-program", "", "1 skipped"),
        ("no-such-program", "git", "1 skipped"),
        ("no-such-program", "git,no-such-program", "1 failed"),
    ],
)
def test_require(tmp_path: Path, name: str, required: str, said: str) -> None:
    (tmp_path / "test_it.py").write_text(TEST.format(name=name))
    words = [
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.conftest",
        "--rootdir",
        tmp_path,
        tmp_path / "test_it.py",
    ]
    env = {**os.environ, "MONKEY_REQUIRE": required}
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, env=env, capture_output=True, text=True)
    assert said in done.stdout.splitlines()[-1], done.stdout + done.stderr
