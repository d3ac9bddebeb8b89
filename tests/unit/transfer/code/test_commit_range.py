"""What was pushed between two commits, as a real git tells it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from monkey.transfer.code.commit_range import list_between


def git(root: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", "-C", root, *who, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(root: Path, path: str, text: str) -> str:
    (root / path).parent.mkdir(exist_ok=True)
    (root / path).write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", text)
    return git(root, "rev-parse", "HEAD")


def test_only_commits_in_between_that_change_a_path(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    paths = ["specs/a.yaml", "train.py"]
    made = [commit(tmp_path, path, str(at)) for at, path in enumerate(
        ["specs/a.yaml", "specs/a.yaml", "README.md", "specs/b.yaml", "train.py", "specs/a.yaml"]
    )]  # fmt: skip
    assert list_between(tmp_path, made[0], made[-1], paths) == [made[4], made[1]]
    assert list_between(tmp_path, made[0], "f" * 40, paths) == []
    assert list_between(tmp_path / "specs", made[0], made[-1], ["a.yaml"]) == [made[1]]


def test_where_no_repository_is_nothing_is_known(tmp_path: Path) -> None:
    assert list_between(tmp_path, "a" * 40, "b" * 40, ["x"]) == []
