"""Other trees of a repository: their files are those of git, and nothing that the repository names is started."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from monkey.errors import PlanError
from monkey.transfer.code.git_trees import GitTree, find_branch_name, open_merge_base, open_merge_result
from tests.git_command import git


def commit(root: Path, **files: str) -> str:
    """Write the files, commit, and return the commit."""
    for name, text in files.items():
        (root / f"{name}.txt").write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "more", "--allow-empty")
    return git(root, "rev-parse", "HEAD")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a repository in which main and feature went apart."""
    root = tmp_path / "r"
    (root / "sub").mkdir(parents=True)
    git(root, "init", "-q")
    (root / "sub" / "run").write_text("#!/bin/sh\n")
    (root / "sub" / "run").chmod(0o755)
    commit(root, a="1", b="1")
    git(root, "checkout", "-qb", "feature")
    commit(root, a="2")
    git(root, "checkout", "-q", "main")
    commit(root, b="2")
    git(root, "checkout", "-q", "feature")
    return root


def texts(at: Path) -> dict[str, str]:
    return {path.stem: path.read_text() for path in at.glob("*.txt")}


def test_merge_base_is_where_the_branches_parted(root: Path) -> None:
    with open_merge_base(root / "sub", "main") as tree:
        assert texts(tree.top) == {"a": "1", "b": "1"}
        assert tree.root == tree.top / "sub" and (tree.root / "run").stat().st_mode & 0o111
    assert not tree.top.exists()
    with open_merge_base(root, "HEAD") as tree:
        assert texts(tree.top) == {"a": "2", "b": "1"}


def test_merge_result_has_both_sides_and_leaves_no_trace(root: Path) -> None:
    before = sorted(path for path in root.rglob("*"))
    with open_merge_result(root, "main") as tree:
        assert texts(tree.top) == {"a": "2", "b": "2"}
        assert git(tree.top, "status", "--porcelain", "--untracked-files=all", "-uall").count("??") == 0
    assert sorted(path for path in root.rglob("*")) == before
    assert git(root, "status", "--porcelain") == ""


def test_conflict_names_the_files(root: Path) -> None:
    commit(root, b="3")
    with pytest.raises(PlanError, match=r"HEAD cannot be merged into main: b\.txt"), open_merge_result(root, "main"):
        pass


@pytest.mark.parametrize("ref", ["nowhere", "--help", "", "HEAD:a.txt"])
def test_what_is_no_commit_is_refused(root: Path, ref: str) -> None:
    with pytest.raises(PlanError, match="expected a commit or a branch"), open_merge_base(root, ref):
        pass


def test_shallow_clone_says_what_it_lacks(root: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", "--no-single-branch", f"file://{root}", "shallow")
    with pytest.raises(PlanError) as raised, open_merge_base(tmp_path / "shallow", "origin/main"):
        pass
    assert "fetch-depth: 0" in (raised.value.hint or "")
    git(tmp_path / "shallow", "fetch", "-q", "--unshallow")
    with open_merge_base(tmp_path / "shallow", "origin/main") as tree:
        assert texts(tree.top) == {"a": "1", "b": "1"}


def clone_one_commit(root: Path, there: Path) -> Path:
    """Clone as CI's checkout does: one commit of one branch, from a forge that knows filters."""
    git(root, "config", "uploadpack.allowFilter", "true")
    git(root.parent, "clone", "-q", "--depth=1", "--branch=feature", f"file://{root}", str(there))
    return there


def test_checkout_of_one_commit_fetches_in_ci_what_a_merge_needs(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    with open_merge_result(clone_one_commit(root, tmp_path / "one"), "origin/main") as tree:
        assert texts(tree.top) == {"a": "2", "b": "2"} and not tree.shallow


@pytest.mark.parametrize("open_tree", [open_merge_base, open_merge_result])
def test_checkout_of_one_commit_says_how_to_get_the_other_branch(
    root: Path, tmp_path: Path, open_tree: Callable[[Path, str], AbstractContextManager[GitTree]]
) -> None:
    there = clone_one_commit(root, tmp_path / "one")
    with pytest.raises(PlanError, match="found 'origin/main'") as raised, open_tree(there, "origin/main"):
        pass
    hint = raised.value.hint or ""
    assert "fetch-depth: 0" in hint
    command = shlex.split(hint.split("`")[1])
    subprocess.run([*command[:1], "-C", there, *command[1:]], check=True, capture_output=True)
    with open_tree(there, "origin/main") as tree:
        assert texts(tree.top).keys() == {"a", "b"}


def test_no_program_of_the_repository_is_started(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / ".gitattributes").write_text("*.txt filter=evil merge=evil diff=evil\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "attributes")
    witness = tmp_path / "witness"
    evil = f"touch {witness}; cat"
    user = tmp_path / "gitconfig"
    for at in (["-C", str(root), "config"], ["config", "--file", str(user)]):
        for key in ("filter.evil.smudge", "filter.evil.clean", "filter.evil.process", "merge.evil.driver"):
            subprocess.run(["git", *at, key, evil], check=True)
    for hook in ("post-checkout", "post-merge", "reference-transaction", "post-index-change"):
        path = root / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {witness}\n")
        path.chmod(0o755)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(user))
    with open_merge_base(root, "main") as tree:
        assert texts(tree.top) == {"a": "1", "b": "1"}
    with open_merge_result(root, "main") as tree:
        assert texts(tree.top) == {"a": "2", "b": "2"}
    assert not witness.exists()


def test_submodules_are_no_merge_that_can_be_planned(root: Path) -> None:
    head = git(root, "rev-parse", "HEAD")
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{head},module")
    git(root, "commit", "-qm", "a submodule")
    with pytest.raises(PlanError, match="submodules"), open_merge_result(root, "main"):
        pass


def test_branch_of_a_remote_is_called_without_it(root: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(root), "clone")
    assert find_branch_name(tmp_path / "clone", "origin/main") == "main"
    assert find_branch_name(root, "HEAD^") == find_branch_name(root, "release/1") == ""
    git(root, "branch", "release/1")
    assert find_branch_name(root, "release/1") == "release/1"
    assert find_branch_name(root, "refs/heads/main") == "main"


def test_no_repository_is_no_tree(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="found none"), open_merge_base(tmp_path, "main"):
        pass
