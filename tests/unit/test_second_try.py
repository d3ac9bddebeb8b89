"""A test that fails twice fails CI; one that passes the second time is named, and does not."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.second_try import MOST, NAMED, PATIENCE, run_twice

pytestmark = pytest.mark.slow

CROWD = ("-n", "2")
TESTS = """
import pathlib
import pytest

def test_sound():
    pass

@pytest.mark.parametrize("name", ["a::b", "c d/e; f"])
def test_busy(name):
    seen = pathlib.Path(name.partition(":")[0][0])
    if not seen.exists():
        seen.touch()
        raise TimeoutError(f"no answer for {name}")

@pytest.fixture
def gone():
    seen = pathlib.Path("gone")
    yield
    if not seen.exists():
        seen.touch()
        raise OSError("it is still there")

def test_end(gone):
    pass
"""
BROKEN = """
import pytest

@pytest.mark.parametrize("n", range({count}))
def test_broken(n):
    with open("runs", "a") as file:
        file.write("x")
    assert n < 0
"""


HANGING = """
import pathlib
import subprocess
import pytest

@pytest.mark.parametrize("n", range(6))
def test_sound(n):
    pass

@pytest.mark.parametrize("name", ["once", "always"])
def test_hang(name):
    seen = pathlib.Path(name)
    if name == "always" or not seen.exists():
        seen.touch()
        with subprocess.Popen(["sleep", "600"]):
            raise AssertionError("it waits for the process")
"""


def run(root: Path, *more: str, crowd: Sequence[str] = CROWD, patience: float = PATIENCE) -> int:
    """Run the tests in `root` so."""
    options = ("-q", "-p", "no:hypothesispytest", "--rootdir", str(root))
    return run_twice([sys.executable, "-m", "pytest", *options, *more], crowd, root, patience)


def test_what_passes_the_second_time_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    assert run(tmp_path) == 0
    assert sorted((tmp_path / NAMED).read_text().splitlines()) == [
        "flaky: test_some.py::test_busy[a::b]: TimeoutError: no answer for a::b",
        "flaky: test_some.py::test_busy[c d/e; f]: TimeoutError: no answer for c d/e; f",
        'flaky: test_some.py::test_end: failed on teardown with "OSError: it is still there"',
    ]
    assert "3 failed: once more, alone" in capfd.readouterr().out
    assert run(tmp_path) == 0
    assert not (tmp_path / NAMED).exists(), "it is of an earlier call"


def test_what_fails_twice_fails(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "test_other.py").write_text(BROKEN.format(count=1))
    assert run(tmp_path) == pytest.ExitCode.TESTS_FAILED
    assert (tmp_path / "runs").read_text() == "xx"
    assert "test_broken" not in (tmp_path / NAMED).read_text()
    assert "test_busy" in (tmp_path / NAMED).read_text()


def test_what_fails_in_masses_is_not_tried_again(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(BROKEN.format(count=MOST + 1))
    assert run(tmp_path) == pytest.ExitCode.TESTS_FAILED
    assert (tmp_path / "runs").read_text() == "x" * (MOST + 1)


def test_what_cannot_be_read_fails_at_once(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text("import nothing_such\n")
    assert run(tmp_path) not in (0, pytest.ExitCode.NO_TESTS_COLLECTED)


def test_what_hangs_is_ended_and_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tests/slurm").mkdir(parents=True)
    (tmp_path / "tests/slurm/test_some.py").write_text(HANGING)
    crowd = [*CROWD, "--dist", "loadgroup", "-p", "tests.groups"]
    assert run(tmp_path, crowd=crowd, patience=3) == pytest.ExitCode.TESTS_FAILED
    out, err = capfd.readouterr()
    assert "2 failed, 6 passed" in out, "what comes after it is run"
    assert "1 failed, 1 passed" in out
    assert err.count("Timeout (0:00:03)!") == 3
    assert "subprocess.py" in err and "test_some.py" in err, "where it stood"
    (line,) = (tmp_path / NAMED).read_text().splitlines()
    assert line.startswith("flaky: tests/slurm/test_some.py::test_hang[once]: ") and "crashed" in line
