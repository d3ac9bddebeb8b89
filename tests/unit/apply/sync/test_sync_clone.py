"""The clone of a sync: what git does, and what it must not do for a repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from monkey.apply.sync.sync_clone import SyncClone, check_branch_name
from monkey.apply.sync.sync_directory import SyncDirectory
from monkey.errors import MonkeyError, RemoteAway
from monkey.removal import remove_tree
from monkey.transfer.code.git_files import read_git_info
from tests.git_remote import GitRemote


def follow(clone: SyncClone) -> str:
    """Bring the clone to the branch's commit."""
    head = clone.look()
    assert head is not None
    clone.prepare()
    clone.update(head)
    clone.check_out(head)
    return head


def test_a_branch_is_followed_in_place(clone: SyncClone, remote: GitRemote) -> None:
    assert follow(clone) == remote.git("rev-parse", "HEAD")
    found = read_git_info(clone.tree)
    assert found == {"commit": clone.look(), "branch": "main", "dirty": False, "remote": clone.remote}
    before = (clone.tree / "kept.txt").stat().st_mtime_ns
    (remote.work / "a.txt").unlink()
    (remote.work / "b.txt").write_text("two")
    first, second = clone.look(), remote.commit()
    assert follow(clone) == second
    assert sorted(path.name for path in clone.tree.iterdir()) == [".git", "b.txt", "kept.txt"]
    assert (clone.tree / "kept.txt").stat().st_mtime_ns == before, "the memo of hashes goes by this"
    assert clone.descends(second, str(first)) and not clone.descends(str(first), second)
    assert not clone.descends(second, "f" * 40)


def test_a_branch_that_is_gone_and_a_remote_that_is_away(clone: SyncClone, remote: GitRemote) -> None:
    remote.git("branch", "-m", "other")
    remote.git("push", "-q", "origin", "other")
    remote.git("symbolic-ref", "HEAD", "refs/heads/other", at=remote.path)
    remote.git("push", "-q", "origin", ":main")
    assert clone.look() is None
    remote.path.rename(remote.path.with_name("moved"))
    with pytest.raises(RemoteAway, match="does not appear to be a git repository"):
        clone.look()


def test_no_program_of_a_url_is_run_and_no_password_is_shown(clone: SyncClone, tmp_path: Path) -> None:
    clone.remote = f"ext::touch {tmp_path}/pwned"
    with pytest.raises(RemoteAway, match="not allowed"):
        clone.look()
    assert not (tmp_path / "pwned").exists()
    clone.remote = "http://user:hunter2@127.0.0.1:9/x.git"
    with pytest.raises(RemoteAway) as caught:
        clone.look()
    assert "127.0.0.1" in caught.value.message and "hunter2" not in caught.value.message


def test_nothing_that_the_repository_or_the_user_names_for_it_is_run(
    clone: SyncClone, remote: GitRemote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil, config, hooks = tmp_path / "evil", tmp_path / "config", tmp_path / "hooks"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/pwned\ncat\n")
    evil.chmod(0o755)
    hooks.mkdir()
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / hook).write_text(evil.read_text())
        (hooks / hook).chmod(0o755)
    config.write_text(
        f"[core]\nhooksPath = {hooks}\nfsmonitor = {evil}\n"
        f'[filter "evil"]\nsmudge = {evil}\nclean = {evil}\nprocess = {evil}\nrequired = true\n'
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    (remote.work / ".gitattributes").write_text("* filter=evil\n")
    remote.commit()
    follow(clone)
    found = read_git_info(clone.tree)
    assert found is not None and (found["commit"], found["dirty"]) == (clone.look(), False)
    assert (clone.tree / "a.txt").read_text() == "one"
    assert not (tmp_path / "pwned").exists()
    # Else the test says nothing: a git that is not kept from it runs them.
    subprocess.run(["git", "clone", "-q", str(remote.path), str(tmp_path / "plain")], capture_output=True)
    assert (tmp_path / "pwned").exists()


def test_what_is_not_followed_is_said(clone: SyncClone, remote: GitRemote) -> None:
    head = remote.git("rev-parse", "HEAD")
    remote.git("update-index", "--add", "--cacheinfo", f"160000,{head},lib")
    (remote.work / ".gitattributes").write_text("*.bin filter=lfs\n")
    remote.git("add", ".gitattributes")
    remote.git("commit", "-q", "-m", "a submodule")
    remote.push()
    follow(clone)
    told = clone.describe_unfollowed()
    assert len(told) == 2 and "submodules are not followed: lib" in told[0] and "LFS" in told[1]


def test_locks_of_a_git_that_was_killed_are_broken(clone: SyncClone, remote: GitRemote) -> None:
    follow(clone)
    for lock in ("index.lock", "HEAD.lock", "refs/heads/main.lock", "config.lock"):
        (clone.tree / ".git" / lock).touch()
    (remote.work / "a.txt").write_text("two")
    remote.commit()
    follow(clone)
    assert (clone.tree / "a.txt").read_text() == "two"


def test_a_clone_that_is_damaged_is_made_again_and_keeps_which_stores_it_met(clone: SyncClone) -> None:
    follow(clone)
    (clone.tree / ".monkey").mkdir()
    (clone.tree / ".monkey" / "stores.json").write_text("{}")
    (clone.tree / ".git" / "HEAD").write_text("garbage")
    follow(clone)
    assert (clone.tree / "a.txt").read_text() == "one"
    assert (clone.tree / ".monkey" / "stores.json").read_text() == "{}"
    remove_tree(clone.tree / ".git")
    follow(clone)
    assert (clone.tree / ".monkey" / "stores.json").read_text() == "{}"


def test_a_damaged_clone_within_another_repository_leaves_that_alone(remote: GitRemote, clone: SyncClone) -> None:
    """Git would look for a repository around the clone, and check out there."""
    follow(clone)
    outer = clone.directory.path.parent
    remote.git("init", "-q", at=outer)
    (outer / "mine.txt").write_text("mine")
    head = clone.look()
    remove_tree(clone.tree / ".git")
    with pytest.raises(MonkeyError, match="not a git repository"):
        clone.check_out(str(head))
    assert (outer / "mine.txt").read_text() == "mine" and not (outer / "a.txt").exists()


def test_files_of_a_checkout_that_was_cut_short_do_not_stay(clone: SyncClone, remote: GitRemote) -> None:
    """They would be untracked files of the next commit, and become code."""
    first = follow(clone)
    (remote.work / "new.py").write_text("x")
    second = remote.commit()
    clone.update(second)
    # As a kill leaves it: the marker is written, and so is a file, and the index is not.
    (clone.directory.path / "checkout").write_text(f"{second}\n")
    (clone.tree / "new.py").write_text("x")
    clone.check_out(first)
    assert not (clone.tree / "new.py").exists()
    assert remote.git("status", "--porcelain", at=clone.tree) == ""


@pytest.mark.parametrize("name", ["-x", "a b", "a..b", ""])
def test_what_is_no_branch_is_refused(name: str) -> None:
    with pytest.raises(MonkeyError, match="name of a branch"):
        check_branch_name(name)
    check_branch_name("feature/x")


def test_a_clone_that_borrows_checks_out_commits_one_after_the_other(clone: SyncClone, remote: GitRemote) -> None:
    follow(clone)
    heads = {}
    for name, file in (("a", "a.py"), ("a/b", "b.py")):  # git takes both only one after the other
        remote.git("checkout", "-q", "-B", "work", "main")
        (remote.work / file).write_text(name)
        heads[file] = remote.commit(push=False)
        remote.git("push", "-q", "--prune", "origin", f"HEAD:refs/heads/{name}", f"HEAD:refs/keep/{file}")
        clone.update(heads[file])
        remote.git("push", "-q", "origin", f":refs/heads/{name}")
    own = clone.directory
    (own.path / "previews").mkdir()
    other = SyncClone(SyncDirectory(own.path / "previews", own.name, own.lock), clone.remote, "", borrow=clone.tree)
    for _ in range(2):
        for file, commit in heads.items():
            other.prepare()
            other.check_out(commit)
            found = read_git_info(other.tree)
            assert found == {"commit": commit, "branch": None, "dirty": False, "remote": clone.remote}
            assert {path.name for path in other.tree.iterdir()} == {".git", "a.txt", "kept.txt", file}
    assert not list((other.tree / ".git" / "objects").glob("??/*")), "it has no objects of its own"
    own.forget_tree()
    follow(clone)  # the branches are gone, and with them what it borrowed
    with pytest.raises(MonkeyError):
        other.check_out(heads["a.py"])
