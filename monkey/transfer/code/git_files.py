"""What git knows of a directory: its files, its commit. Git itself is asked; nothing is written."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NotRequired, TypedDict

from monkey.ci_run import read_ci_run
from monkey.errors import PlanError
from monkey.transfer.code.git_process import run_git

#: What the index calls a submodule.
_SUBMODULE = "160000 "
#: Where a clone keeps the remote's branches.
_ORIGIN = "refs/remotes/origin/"


class GitInfo(TypedDict):
    """Where the work tree stands, and what CI says of it; only the first three are always there."""

    commit: str
    #: Where no branch is checked out, the one that CI says; None where it does not.
    branch: str | None
    #: Something differs from the commit, untracked files included; changes inside submodules are not.
    dirty: bool
    #: The address of the remote, without user and password.
    remote: NotRequired[str]
    #: The project's directory in the repository; not there where it is the top.
    directory: NotRequired[str]
    #: The pull request that CI runs for, who caused the run, and where people see it.
    pull: NotRequired[int]
    actor: NotRequired[str]
    run: NotRequired[str]


def read_git_info(root: Path) -> GitInfo | None:
    """Return where the work tree around `root` stands; None outside of one, or before its first commit.

    Raises PlanError where there is a work tree and git cannot read it.
    """
    top = find_work_tree(root)
    if top is None:
        return None
    # Not what was changed inside submodules: git would look by a process of its own there, and start what clean filters
    # of that repository name.
    seen = ("--untracked-files=normal", "--ignore-submodules=dirty", "--no-renames")
    fields = ask_git(top, "status", "--porcelain=v2", "--branch", "-z", *seen).split("\0")
    headers = dict(field[2:].split(" ", 1) for field in fields if field.startswith("# ") and " " in field[2:])
    commit, branch = headers.get("branch.oid", "(initial)"), headers.get("branch.head", "(detached)")
    if commit == "(initial)":
        return None
    dirty = any(field and not field.startswith("# ") and not _is_saved_plan(field) for field in fields)
    info = GitInfo(commit=commit, branch=None if branch == "(detached)" else branch, dirty=dirty)
    if remote := strip_credentials(read_remote_url(top)):
        info["remote"] = remote
    if root.resolve() != top.resolve():
        info["directory"] = root.resolve().relative_to(top.resolve()).as_posix()
    return _with_ci(info)


def _is_saved_plan(field: str) -> bool:
    """Tell whether a path that git does not track is a saved plan, which CI leaves here and which never is code."""
    name = field.removeprefix("? ").rpartition("/")[2]
    return field.startswith("? ") and (name == "plan.json" or name.endswith(".plan.json"))


def _with_ci(info: GitInfo) -> GitInfo:
    run = read_ci_run()
    if run is None:
        return info
    info["branch"] = info["branch"] or run.branch or None
    if run.pull is not None:
        info["pull"] = run.pull
    if run.actor:
        info["actor"] = run.actor
    if run.url:
        info["run"] = run.url
    return info


def strip_credentials(address: str, *, keep_user: bool = False) -> str:
    """Return a remote's address without user, password and query, any of which may be a token.

    `keep_user`: ssh needs its user, who is no secret.
    """
    if "://" not in address:
        host, colon, path = address.partition(":")
        return address if keep_user or "/" in host else f"{host.rpartition('@')[2]}{colon}{path}"
    scheme, _, rest = address.partition("://")
    login, slash, path = rest.partition("/")
    user, at, host = login.rpartition("@")
    kept = user.partition(":")[0] + at if keep_user and not scheme.startswith("http") else ""
    return f"{scheme}://{kept}{re.split('[?#]', host + slash + path)[0]}"


def read_remote_url(top: Path) -> str:
    """Return the URL of the remote `origin` of a work tree, as it is written; "" without one."""
    return _read(top, "config", "--get", "remote.origin.url")


def read_origin_url(root: Path) -> str:
    """Return the URL of the remote `origin`, as it is written; "" without one, or where `root` is no work tree's top.

    A directory within a repository has a name of its own, the same in all clones. Raises PlanError where git cannot
    tell.
    """
    if find_work_tree(root) != root.resolve():
        return ""
    try:
        return read_remote_url(root.resolve())
    except PlanError as exc:
        raise PlanError(
            "the project's name is its repository's, which only git can tell, and git does not answer here",
            hint="install git, or write project: NAME into monkey.yaml",
        ) from exc


def read_default_branch(root: Path) -> str:
    """Return the remote's default branch, as far as the clone knows it; "" where it does not.

    A clone of an empty repository never heard of it. Then it is the remote's only branch. Of several, it is the first
    of `init.defaultBranch`, main and master. A clone that follows some branches alone does not guess.
    """
    top = find_work_tree(root)
    if top is None:
        return ""
    if known := _read(top, "symbolic-ref", "--quiet", _ORIGIN + "HEAD"):
        return known.removeprefix(_ORIGIN)
    if _read(top, "config", "--get-all", "remote.origin.fetch") != f"+refs/heads/*:{_ORIGIN}*":
        return ""
    there = _read(top, "for-each-ref", "--format=%(refname:lstrip=3)", _ORIGIN).split("\n")
    likely = [name for name in (_read(top, "config", "init.defaultBranch"), "main", "master") if name in there]
    return there[0] if len(there) == 1 else next(iter(likely), "")


def read_current_branch(root: Path) -> str:
    """Return the branch that is checked out, which may have no commit yet; "" for none."""
    top = find_work_tree(root)
    return _read(top, "symbolic-ref", "--quiet", "HEAD").removeprefix("refs/heads/") if top else ""


def _read(top: Path, *arguments: str) -> str:
    """Return what git prints; "" where it fails."""
    done = run_git(top, *arguments)
    return os.fsdecode(done.stdout).strip() if done.returncode == 0 else ""


def find_work_tree(root: Path) -> Path | None:
    """Return the directory with `.git` in it that `root` lies in, links followed, without asking git.

    Git is asked there and nowhere below: a directory of the project may look like a repository.
    """
    real = root.resolve()
    return next((path for path in (real, *real.parents) if os.path.lexists(path / ".git")), None)


def list_files(root: Path, project: Path | None = None) -> dict[str, bool] | None:
    """Return the paths below `root` that git sees, of submodules too: True if tracked, False if only not ignored.

    Paths may be gone from the disk. A submodule that is not checked out is its directory; a repository that is no
    submodule is its directory and a '/'. None outside of a work tree, or where the whole of `root` is ignored. Raises
    PlanError where git cannot tell, or `root` lies in a repository that is neither the `project`'s nor a submodule.
    """
    top = find_work_tree(root)
    if top is None:
        return None
    if project is not None:
        _check_submodule(top, project)
    below = root.resolve().relative_to(top).as_posix()
    prefix = "" if below == "." else f"{below}/"
    seen = ("-t", "--cached", "--others", "--exclude-standard")
    tagged = ask_git(top, "ls-files", "-z", *seen, "--", f":(literal){below}").split("\0")
    found = [(line[2:].rstrip("/"), line[0] != "?") for line in tagged if line and line[2:].startswith(prefix)]
    if not found and run_git(top, "check-ignore", "-q", "--", f"./{below}").returncode == 0:
        return None
    nested = {name for name, _ in found if _is_repository(top / name)}
    submodules = nested & _submodules(top) if nested else nested
    paths: dict[str, bool] = {}
    for name, tracked in found:
        path = name.removeprefix(prefix)
        if name in submodules:
            paths |= {f"{path}/{inner}": of for inner, of in (list_files(top / name) or {}).items()}
        else:
            paths[f"{path}/" if name in nested else path] = tracked
    return paths


def _is_repository(path: Path) -> bool:
    """Tell whether a submodule is checked out here, or a repository that was not added."""
    return os.path.lexists(path / ".git") and not path.is_symlink()


def _submodules(top: Path) -> set[str]:
    entries = ask_git(top, "ls-files", "-z", "--stage").split("\0")
    return {entry.partition("\t")[2] for entry in entries if entry.startswith(_SUBMODULE)}


def _check_submodule(top: Path, project: Path) -> None:
    """Raise PlanError unless the work tree `top` is the one of `project`, or a submodule in it at any depth."""
    own, at = find_work_tree(project), top
    while own is not None and at != own:
        outer = find_work_tree(at.parent)
        if outer is None or at.relative_to(outer).as_posix() not in _submodules(outer):
            raise PlanError(
                f"expected code of the project, found that {at} is a repository of its own, and no submodule",
                hint=f"add it with `git submodule add`, or remove {at / '.git'}",
            )
        at = outer


def ask_git(top: Path, *arguments: str) -> str:
    """Return what git prints; raises PlanError with what it says when it fails."""
    done = run_git(top, *arguments)
    if done.returncode != 0:
        said = os.fsdecode(done.stderr).strip() or f"exit code {done.returncode}"
        raise PlanError(f"git cannot read the work tree of {top}: {said}", hint=f"try: git -C {top} status")
    return os.fsdecode(done.stdout)
