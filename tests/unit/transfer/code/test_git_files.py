"""What git knows of a work tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.errors import PlanError
from monkey.transfer.code.code_snapshot import read_git_info
from monkey.transfer.code.git_files import (
    list_files,
    read_current_branch,
    read_default_branch,
    read_origin_url,
    strip_credentials,
)
from tests.unit.transfer.conftest import Git


def test_commit_branch_and_dirt(repository: Path, git: Git) -> None:
    head = git(repository, "rev-parse", "HEAD")
    assert read_git_info(repository) == {"commit": head, "branch": "main", "dirty": False}
    inside = {"commit": head, "branch": "main", "dirty": False, "directory": "lib"}
    assert read_git_info(repository / "lib") == inside
    (repository / "new.py").write_text("x")
    assert read_git_info(repository) == {"commit": head, "branch": "main", "dirty": True}
    git(repository, "add", ".")
    git(repository, "checkout", "-q", "--detach")
    assert read_git_info(repository) == {"commit": head, "branch": None, "dirty": True}


def test_the_default_branch_is_the_remote_s(repository: Path, git: Git, tmp_path: Path) -> None:
    assert read_default_branch(repository / "lib") == "" and read_current_branch(repository / "lib") == "main"
    git(tmp_path, "clone", "-q", str(repository), "clone")
    git(tmp_path / "clone", "checkout", "-qb", "mine")
    assert read_default_branch(tmp_path / "clone") == "main"
    git(repository, "checkout", "-q", "--detach")
    assert read_current_branch(repository) == read_current_branch(tmp_path) == read_default_branch(tmp_path) == ""
    assert read_origin_url(tmp_path / "clone") == str(repository)
    (tmp_path / "clone" / "lib" / "deep").mkdir()
    assert read_origin_url(tmp_path / "clone" / "lib") == read_origin_url(tmp_path) == ""


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


@pytest.mark.parametrize(
    "address, shown",
    [
        ("https://ann:t0ken@git.example.org/lab/digits.git", "https://git.example.org/lab/digits.git"),
        ("https://gitlab-ci-token:t0ken@git.example.org:8443/a/b", "https://git.example.org:8443/a/b"),
        ("https://git.example.org/a/b?private_token=t0ken", "https://git.example.org/a/b"),
        ("https://git.example.org?private_token=t0ken", "https://git.example.org"),
        ("https://a@b:t0ken@git.example.org/a@2", "https://git.example.org/a@2"),
        ("ssh://git@git.example.org:22/a/b.git", "ssh://git.example.org:22/a/b.git"),
        ("git@git.example.org:a/b.git", "git.example.org:a/b.git"),
        ("/srv/git/b.git", "/srv/git/b.git"),
        ("../b@2:c", "../b@2:c"),
    ],
)
def test_a_remote_is_told_without_what_opens_it(repository: Path, git: Git, address: str, shown: str) -> None:
    assert strip_credentials(address) == shown
    git(repository, "remote", "add", "origin", address)
    info = read_git_info(repository)
    assert info is not None and info["remote"] == shown


def test_ci_says_the_branch_and_who_runs_it(repository: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"CI": "true", "GITLAB_CI": "true", "CI_COMMIT_BRANCH": "pr", "CI_MERGE_REQUEST_IID": "12"}
    said |= {"GITLAB_USER_LOGIN": "ann", "CI_PIPELINE_URL": "https://git.example.org/p/1"}
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    head = git(repository, "rev-parse", "HEAD")
    info = {"commit": head, "dirty": False, "pull": 12, "actor": "ann", "run": "https://git.example.org/p/1"}
    assert read_git_info(repository) == info | {"branch": "main"}
    git(repository, "checkout", "-q", "--detach")
    assert read_git_info(repository) == info | {"branch": "pr"}


def test_saved_plan_is_no_dirt(repository: Path) -> None:
    (repository / "pr.plan.json").write_text("{}")
    info = read_git_info(repository)
    assert info is not None and not info["dirty"]
    (repository / "myplan.json").write_text("{}")
    info = read_git_info(repository)
    assert info is not None and info["dirty"]


def test_a_clone_that_never_heard_of_the_default_branch_takes_the_likely_one(
    repository: Path, git: Git, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repository), "clone")
    git(clone, "remote", "set-head", "origin", "--delete")  # as after the clone of an empty repository
    git(clone, "config", "init.defaultBranch", "trunk")
    assert read_default_branch(clone) == "main", "the only one"
    for name, expected in (("feature", "main"), ("trunk", "trunk")):
        git(repository, "branch", name)
        git(clone, "fetch", "-q")
        assert read_default_branch(clone) == expected
    git(clone, "config", "remote.origin.fetch", "+refs/heads/feature:refs/remotes/origin/feature")
    assert read_default_branch(clone) == "", "it was never told of the others"
