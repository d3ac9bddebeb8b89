"""What git knows of a work tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.errors import PlanError
from monkey.transfer.code.code_snapshot import read_git_info
from monkey.transfer.code.git_files import list_files
from tests.unit.transfer.conftest import Git


def test_commit_branch_and_dirt(repository: Path, git: Git) -> None:
    head = git(repository, "rev-parse", "HEAD")
    assert read_git_info(repository) == {"commit": head, "branch": "main", "dirty": False}
    assert read_git_info(repository / "lib") == {"commit": head, "branch": "main", "dirty": False}
    (repository / "new.py").write_text("x")
    assert read_git_info(repository) == {"commit": head, "branch": "main", "dirty": True}
    git(repository, "add", ".")
    git(repository, "checkout", "-q", "--detach")
    assert read_git_info(repository) == {"commit": head, "branch": None, "dirty": True}


def test_outside_of_git_and_before_the_first_commit_there_is_nothing(tmp_path: Path, git: Git) -> None:
    assert read_git_info(tmp_path) is None
    git(tmp_path, "init", "-q")
    assert read_git_info(tmp_path) is None


@pytest.mark.parametrize("name", ["GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS"])
def test_how_a_hook_s_git_reads_paths_is_not_how_ours_does(
    repository: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    found = list_files(repository / "lib")
    assert found
    monkeypatch.setenv(name, "1")
    assert list_files(repository / "lib") == found


def test_a_broken_repository_is_told(repository: Path) -> None:
    (repository / ".git" / "HEAD").write_text("garbage")
    with pytest.raises(PlanError, match="git cannot read"):
        read_git_info(repository)
