"""Other trees of the project's repository: as files in a directory aside, of which the repository knows nothing.

Git itself writes them, in a repository of our own that borrows the objects. So no setting, hook, filter or merge driver
of the project's repository counts, nor do the user's: a stranger's branch may have brought them along.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from monkey.ci_run import is_ci
from monkey.errors import PlanError
from monkey.transfer.code.commit_history import CommitHistory
from monkey.transfer.code.git_files import find_work_tree
from monkey.transfer.code.git_process import run_git

#: Settings of the user and of the machine name filters, too.
_NO_SETTINGS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
#: What `git merge-tree` exits with where the two cannot be merged.
_CONFLICT = 1
#: What it exits with where it does not know its options: git before 2.38.
_USAGE = 129
#: What `ls-tree` calls a submodule.
_GITLINK = "160000 "

#: The hint for commits and files that a clone lacks.
_DEEPER = "clone with full history, and without --filter (in CI: fetch-depth: 0)"
#: The hint for a branch that a shallow clone lacks: a bare `git fetch` brings it to no clone of one branch.
_FETCH_ALL = (
    "this clone is shallow: run `git fetch --unshallow origin '+refs/heads/*:refs/remotes/origin/*'` (in CI: "
    "fetch-depth: 0)"
)
#: What comes before the hint where a merge fails in a shallow clone.
_SHALLOW = "this clone is shallow, and may lack the commit at which they parted: run `git fetch --unshallow`; else "


@dataclass(frozen=True)
class GitTree:
    """A tree of the repository, as files below `top`, the root of its work tree."""

    top: Path
    #: The project's directory in it.
    root: Path
    #: Was it made in a shallow clone, which may lack commits that make it another one?
    shallow: bool = False


@contextmanager
def open_merge_base(root: Path, ref: str) -> Iterator[GitTree]:
    """Open the tree of the commit at which HEAD parted from `ref`. Raises PlanError where there is none."""
    top = _find_top(root)
    then, now = _resolve(top, ref), _resolve(top, "HEAD")
    done = run_git(top, "merge-base", then, now)
    if done.returncode:
        raise PlanError(
            f"{ref} and HEAD have no commit in common that this clone knows",
            hint="clone with full history (in CI: fetch-depth: 0); or name a commit before HEAD, such as HEAD^",
        )
    with _open_aside(top) as aside:
        yield _check_out(aside, os.fsdecode(done.stdout).strip(), root, top)


@contextmanager
def open_merge_result(root: Path, ref: str) -> Iterator[GitTree]:
    """Open the tree that a merge of HEAD into `ref` has. Raises PlanError where they cannot be merged.

    In CI, a shallow clone fetches the rest of its history first.
    """
    top = _find_top(root)
    now = _resolve(top, "HEAD")
    history = CommitHistory(top, now, fetches=is_ci())
    if history.is_shallow():
        history.deepen(files=True)
    then = _resolve(top, ref)  # only now: CI's checkout of one commit begins without any other branch
    shallow = history.is_shallow()
    before = _SHALLOW if shallow else ""
    with _open_aside(top) as aside:
        done = run_git(
            aside, "merge-tree", "--write-tree", "--name-only", "--no-messages", then, now, variables=_NO_SETTINGS
        )
        tree, *conflicts = os.fsdecode(done.stdout).split("\n")
        if done.returncode == _CONFLICT and tree:
            names = ", ".join(name for name in conflicts if name)
            raise PlanError(
                f"HEAD cannot be merged into {ref}: {names}", hint=f"{before}merge {ref} into this branch first"
            )
        if done.returncode:
            older = "; it takes git 2.38 or newer" if done.returncode == _USAGE else ""
            raise PlanError(
                f"git cannot merge HEAD into {ref}: {_last_line(done.stderr)}{older}", hint=before + _DEEPER
            )
        yield replace(_check_out(aside, tree, root, top, whole=True), shallow=shallow)


def find_branch_name(root: Path, ref: str) -> str:
    """Return the name of a branch, without its remote's: "main" for origin/main; "" for what is no branch."""
    top, short = _find_top(root), ref.removeprefix("refs/heads/").removeprefix("refs/remotes/")
    for kind, name in (("remotes", short.partition("/")[2]), ("heads", short)):
        if run_git(top, "rev-parse", "--verify", "-q", f"refs/{kind}/{short}").returncode == 0:
            return name
    return ""


def _find_top(root: Path) -> Path:
    top = find_work_tree(root)
    if top is None:
        raise PlanError(f"expected a git repository, found none around {root}", hint="`git init`, and commit")
    return top


def _resolve(top: Path, ref: str) -> str:
    """Return the commit that `ref` names. Raises PlanError."""
    done = run_git(top, "rev-parse", "--verify", "-q", "--end-of-options", f"{ref}^{{commit}}")
    commit = os.fsdecode(done.stdout).strip()
    if done.returncode or not commit:
        hint = _FETCH_ALL if CommitHistory(top, ref).is_shallow() else "`git fetch` brings it"
        raise PlanError(f"expected a commit or a branch, found {ref!r}", hint=f"{hint}; branches are origin/NAME")
    return commit


@contextmanager
def _open_aside(top: Path) -> Iterator[Path]:
    """Open a repository of our own that has all objects of the project's, and none of its settings."""
    with tempfile.TemporaryDirectory(prefix="monkey-tree-", ignore_cleanup_errors=True) as name:
        aside = Path(name).resolve() / "tree"
        aside.mkdir()
        form = os.fsdecode(run_git(top, "rev-parse", "--show-object-format").stdout).strip() or "sha1"
        made = run_git(aside, "init", "-q", "--template=", f"--object-format={form}", variables=_NO_SETTINGS)
        if made.returncode:
            raise PlanError(f"git cannot make a repository in {aside}: {_last_line(made.stderr)}")
        info = aside / ".git" / "objects" / "info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "alternates").write_bytes(os.fsencode(_locate(top, "objects")) + b"\n")
        shallow = _locate(top, "shallow")
        if shallow.is_file():
            (aside / ".git" / "shallow").write_bytes(shallow.read_bytes())
        yield aside


def _locate(top: Path, name: str) -> Path:
    return top / os.fsdecode(run_git(top, "rev-parse", "--git-path", name).stdout).removesuffix("\n")


def _check_out(aside: Path, tree: str, root: Path, top: Path, *, whole: bool = False) -> GitTree:
    """Write the tree's files; `whole`: its submodules must be there, too. Raises PlanError."""
    for arguments in (("read-tree", tree), ("checkout-index", "--all", "--quiet")):
        done = run_git(aside, *arguments, variables=_NO_SETTINGS)
        if done.returncode:
            raise PlanError(f"git cannot read the files of {tree[:10]}: {_last_line(done.stderr)}", hint=_DEEPER)
    if whole and _GITLINK in os.fsdecode(run_git(aside, "ls-files", "--stage", variables=_NO_SETTINGS).stdout):
        raise PlanError(
            "a merge with submodules cannot be planned without making it",
            hint="merge, and plan that: `git merge --no-commit`, `monkey plan`, `git merge --abort`",
        )
    return GitTree(aside, aside / root.resolve().relative_to(top))


def _last_line(said: bytes) -> str:
    return next(reversed(os.fsdecode(said).strip().splitlines()), "no reason given")
