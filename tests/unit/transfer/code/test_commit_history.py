"""Questions about a history, to a real git."""

from __future__ import annotations

import hashlib
from pathlib import Path

from monkey.plan.commits.place import CommitAncestry
from monkey.transfer.code.commit_history import CommitHistory, CommittedContent
from tests.unit.transfer.conftest import Git


def test_who_descends_from_whom(repository: Path, git: Git) -> None:
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    second = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "-b", "side", first)
    git(repository, "commit", "-q", "--allow-empty", "-m", "side")
    side = git(repository, "rev-parse", "HEAD")
    history = CommitHistory(repository / "lib", second)
    assert history.compare(first) is CommitAncestry.ANCESTOR
    assert history.compare(second) is CommitAncestry.ANCESTOR
    assert history.compare(side) is CommitAncestry.NEITHER
    assert CommitHistory(repository, first).compare(second) is CommitAncestry.DESCENDANT
    for unknown in ("f" * 40, "--version", "HEAD", "", f"{first}\n"):
        assert history.compare(unknown) is CommitAncestry.MISSING, "only whole commits are looked for"
    assert not history.is_shallow()


def test_a_content_is_found_whatever_the_ends_of_lines_of_its_spec_are(repository: Path, git: Git) -> None:
    (repository / "specs/digits.yaml").write_bytes(b"a: 1\r\nb: 2\r\n")
    git(repository, "commit", "-q", "-a", "-m", "second")
    head = git(repository, "rev-parse", "HEAD")
    history = CommitHistory(repository, head)
    model = hashlib.sha256(b"model").hexdigest()
    there = CommittedContent("specs/digits.yaml", "a: 1\nb: 2\n", "lib", {"lib/model.py": model})
    assert history.has_content(there)
    assert not history.has_content(there, apart_from=head)
    assert not history.has_content(there._replace(text="a: 1\n"))
    assert not history.has_content(there._replace(files={"lib/model.py": "0" * 64}))
    assert not history.has_content(there._replace(files={"lib/gone.py": model}))
    assert not history.has_content(there._replace(spec="specs/\nHEAD"))


def test_a_commit_is_pushed_once_a_branch_of_a_remote_has_it(repository: Path, git: Git, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    assert CommitHistory(repository, git(repository, "rev-parse", "HEAD")).is_pushed(), "no one else compares with it"
    git(tmp_path, "clone", "-q", str(repository), str(clone))
    assert CommitHistory(clone, git(clone, "rev-parse", "HEAD")).is_pushed()
    git(clone, "commit", "-q", "--allow-empty", "-m", "of this laptop alone")
    assert not CommitHistory(clone, git(clone, "rev-parse", "HEAD")).is_pushed()
