"""Directories for temporary files: empty, of one attempt alone, and gone after it, whatever became of the agent."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from monkey_agent.execution.temporary_directories import TemporaryDirectories


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where this machine has temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_each_has_its_own_and_leaves_nothing(base: Path) -> None:
    directories = TemporaryDirectories(Path("/state"))
    first, second = Path(directories.take()), Path(directories.take())
    assert first != second and first.parent == second.parent
    assert first.stat().st_mode & 0o777 == first.parent.stat().st_mode & 0o777 == 0o700
    (first / "sub").mkdir()
    (first / "sub/file").write_text("left")
    directories.give(str(first))
    directories.give(str(second))
    assert directories.has_trash and first.exists()
    third = Path(directories.take())
    assert third == second, "nobody used it"
    directories.empty()
    assert not first.exists() and third.exists() and not directories.has_trash
    directories.give(str(third))
    directories.close()
    assert not list(base.iterdir())


def test_a_directory_that_was_used_or_is_gone_is_handed_to_nobody(base: Path) -> None:
    directories = TemporaryDirectories(Path("/state"))
    used, cleaned, hidden, written = (Path(directories.take()) for _ in range(4))
    (used / "file").touch()
    (used / "file").unlink()
    hidden.chmod(0)
    for path in (used, cleaned, hidden):
        directories.give(str(path))
    directories.give(str(written), spoilt=True)
    cleaned.rmdir()
    new = Path(directories.take())
    assert new not in (used, cleaned, hidden, written) and new.is_dir()
    directories.give(str(new))
    directories.close()
    assert not list(base.iterdir())


def test_what_a_killed_agent_left_goes_with_the_next_one(base: Path) -> None:
    left = Path(TemporaryDirectories(Path("/state")).take())
    (left / "file").write_text("left")
    other = Path(TemporaryDirectories(Path("/other")).take())
    directories = TemporaryDirectories(Path("/state"))
    assert directories.has_trash
    new = Path(directories.take())
    assert new != left
    directories.empty()
    assert new.exists() and not left.exists() and other.exists()


def test_its_path_leaves_room_for_a_socket(base: Path) -> None:
    path = TemporaryDirectories(Path("/home/somebody/.local/state/monkey/project/local/machine")).take()
    assert len(path) - len(str(base)) < 20


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a directory to another user")
def test_a_directory_of_somebody_else_is_left_alone(base: Path) -> None:
    (root,) = {Path(TemporaryDirectories(Path("/state")).take()).parent}
    os.chown(root, 12345, 12345)
    directories = TemporaryDirectories(Path("/state"))
    assert directories.take() == ""
    directories.give("")
    directories.close()
    assert root.exists()


def test_a_link_in_its_place_is_not_followed(base: Path) -> None:
    precious = base / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    directories = TemporaryDirectories(Path("/state"))
    path = Path(directories.take())
    path.rmdir()
    path.parent.rmdir()
    path.parent.symlink_to(precious)
    directories.give(str(path))
    assert directories.take() == ""
    directories.close()
    assert (precious / "file").read_text() == "kept"
