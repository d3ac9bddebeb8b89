"""Who leaves a file open is named, though nothing but a collection would close it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
def test_sound():
    pass

def test_open():
    class Holder:
        pass

    holder = Holder()
    holder.itself = holder
    holder.file = open(__file__)

def test_next():
    pass
"""


@pytest.mark.slow
def test_the_test_that_left_a_file_open_fails(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    options = ["-q", "-p", "tests.leftovers", "-W", "error", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stderr
    assert "ResourceWarning: unclosed file" in done.stdout
    assert done.stdout.splitlines()[-2].endswith("test_some.py::test_open")
    assert "3 passed, 1 error" in done.stdout
