"""A test that fails twice fails CI; one that passes the second time is named, and does not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.second_try import MOST, NAMED, run_twice

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


def run(root: Path, *more: str) -> int:
    """Run the tests in `root` so."""
    options = ("-q", "-p", "no:hypothesispytest", "--rootdir", str(root))
    return run_twice([sys.executable, "-m", "pytest", *options, *more], CROWD, root)


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
