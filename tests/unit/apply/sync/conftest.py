"""A remote, and a clone that follows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monkey.apply.sync.sync_clone import SyncClone
from monkey.apply.sync.sync_directory import SyncDirectory
from tests.git_remote import GitRemote


@pytest.fixture
def remote(require: Callable[[str], str], tmp_path: Path) -> GitRemote:
    """Return a remote with one commit."""
    require("git")
    made = GitRemote(tmp_path / "remote")
    (made.work / "a.txt").write_text("one")
    (made.work / "kept.txt").write_text("the same")
    made.commit()
    return made


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[SyncDirectory]:
    """Return a state directory, locked."""
    made = SyncDirectory(tmp_path / "state", "sweeps")
    made.open()
    yield made
    made.close()


@pytest.fixture
def clone(remote: GitRemote, directory: SyncDirectory) -> SyncClone:
    """Return a clone of the remote, with nothing in it yet."""
    made = SyncClone(directory, str(remote.path), "main")
    made.prepare()
    return made
