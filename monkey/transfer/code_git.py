"""What git knows of a directory: its files, its commit. Git itself is asked; nothing is written."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TypedDict

from monkey.errors import PlanError

#: Seconds after which git is taken to hang (a dead network file system, a prompt).
TIMEOUT = 120

#: Set while a hook runs, for the hook's repository: not necessarily the one that is asked here.
_HOOK_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_NAMESPACE")


class GitInfo(TypedDict):
    """Where the work tree stands."""

    commit: str
    #: None when no branch is checked out, as in most CI.
    branch: str | None
    #: Something differs from the commit, untracked files included.
    dirty: bool


def git_info(root: Path) -> GitInfo | None:
    """Return where the work tree around `root` stands; None outside of one, or before its first commit.

    Raises PlanError where there is a work tree and git cannot read it.
    """
    if work_tree(root) is None:
        return None
    fields = _git(root, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal").split("\0")
    headers = dict(field[2:].split(" ", 1) for field in fields if field.startswith("# ") and " " in field[2:])
    commit, branch = headers.get("branch.oid", "(initial)"), headers.get("branch.head", "(detached)")
    if commit == "(initial)":
        return None
    dirty = any(field and not field.startswith("# ") for field in fields)
    return GitInfo(commit=commit, branch=None if branch == "(detached)" else branch, dirty=dirty)


def descends(root: Path, ancestor: str, commit: str) -> bool | None:
    """Tell whether `commit` is `ancestor` or descends from it; None where git does not know (a shallow clone)."""
    done = _run(root, "merge-base", "--is-ancestor", "--end-of-options", ancestor, commit)
    return {0: True, 1: False}.get(done.returncode)


def work_tree(root: Path) -> Path | None:
    """Return the directory with `.git` in it that `root` lies in, without asking git."""
    absolute = root.absolute()
    return next((path for path in (absolute, *absolute.parents) if os.path.lexists(path / ".git")), None)


def list_files(root: Path) -> dict[str, bool] | None:
    """Return the paths below `root` that git sees, of submodules too: True if tracked, False if only not ignored.

    Paths may be gone from the disk; a submodule that is not checked out is its directory. None outside of a work tree,
    or where the whole of `root` is ignored. Raises PlanError where git cannot tell.
    """
    if work_tree(root) is None:
        return None
    tagged = _git(root, "ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard").split("\0")
    found = [(line[2:].rstrip("/"), line[0] != "?") for line in tagged if line]
    if not found and _run(root, "check-ignore", "-q", ".").returncode == 0:
        return None
    paths: dict[str, bool] = {}
    for name, tracked in found:
        if _is_repository(root / name):
            paths |= {f"{name}/{inner}": of for inner, of in (list_files(root / name) or {}).items()}
        else:
            paths[name] = tracked
    return paths


def _is_repository(path: Path) -> bool:
    """Tell whether a submodule is checked out here, or a repository that nobody added."""
    return os.path.lexists(path / ".git") and not path.is_symlink()


def _git(root: Path, *arguments: str) -> str:
    """Return what git prints; raises PlanError with what it says when it fails."""
    done = _run(root, *arguments)
    if done.returncode != 0:
        said = os.fsdecode(done.stderr).strip() or f"exit code {done.returncode}"
        raise PlanError(f"git cannot read the work tree of {root}: {said}", hint=f"try: git -C {root} status")
    return os.fsdecode(done.stdout)


def _run(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if name not in _HOOK_VARIABLES}
    environment |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        return subprocess.run(
            ["git", "-C", str(root), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            timeout=TIMEOUT,
            check=False,
        )
    except FileNotFoundError as exc:
        raise PlanError(
            f"{root} is in a git work tree, but there is no git here to tell which of its files are ignored",
            hint="install git",
        ) from exc
    except subprocess.TimeoutExpired as exc:
        raise PlanError(f"git did not answer within {TIMEOUT} s in {root}") from exc
