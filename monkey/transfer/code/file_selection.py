"""The selection of the files that are the code of a sweep."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from monkey.errors import PlanError
from monkey.transfer.code.credential_names import is_credential_name
from monkey.transfer.code.git_files import list_files
from monkey.transfer.fetch_directory import FETCHED, FETCHED_MANIFEST
from monkey.transfer.globs import GlobPatterns

#: Left out unless `code.include` names files: a change of them changes no result. (So are specs: see `leave_out`.)
NOT_CODE = GlobPatterns(
    (
        "**/*.md",
        "**/*.markdown",
        "monkey.yaml",
        # Saved plans (`monkey plan -o`): one that were code would make itself stale.
        "**/plan.json",
        "**/*.plan.json",
        ".github",
        ".gitlab",
        ".gitlab-ci.yml",
        ".ci",
        ".circleci",
        ".travis.yml",
        "azure-pipelines.yml",
        "bitbucket-pipelines.yml",
        "Jenkinsfile",
        "**/.gitignore",
        "**/.gitattributes",
        ".pre-commit-config.yaml",
    )
)

#: Output of commands: left out like `NOT_CODE`, unless git tracks it.
_LOGS = GlobPatterns(("**/*.log", "**/nohup.out", "**/slurm-*.out"))

#: Never code, even if listed: our own store and files, git's, and DVC's beside its settings (which git ignores).
_NEVER = GlobPatterns(
    ("**/.monkey", f"**/{FETCHED_MANIFEST}", "**/.git", "**/.dvc/tmp", "**/.dvc/cache", "**/.dvc/config.local")
)

#: Files that programs leave behind; they are code only where git tracks them.
_LITTER = GlobPatterns(
    (
        "**/.hg",
        "**/.svn",
        "**/__pycache__",
        "**/*.pyc",
        "**/.venv",
        "**/venv",
        "**/node_modules",
        "**/.*_cache",
        "**/.tox",
        "**/.nox",
        "**/.eggs",
        "**/*.egg-info",
        "**/.ipynb_checkpoints",
        "**/.DS_Store",
        "**/Thumbs.db",
        "**/*~",
        "**/.*.sw[a-p]",
        "**/.#*",
        "**/.idea",
        "**/.vscode",
    )
)


#: Files that mark their directory as a virtual environment, a cache, or fetched.
_MARKS = frozenset(("pyvenv.cfg", "CACHEDIR.TAG", FETCHED))


@dataclass(frozen=True)
class SelectedFiles:
    """The files of a code snapshot, and what is known of them; paths are relative to the root and '/'-separated."""

    #: Sorted. One that ends in '/' is a repository that is no submodule: files in it would belong, and cannot.
    paths: list[str]
    #: Those of them that git lists and does not track; empty where git lists no files.
    untracked: frozenset[str]
    #: Those that git tracks, or `code.include` names in full: they are code whatever they hold.
    vouched: frozenset[str]
    #: Files that are left out by their names, as they may hold credentials.
    credentials: tuple[str, ...]


def select_files(
    root: Path, include: Sequence[str], leave_out: Collection[str] = (), project: Path | None = None
) -> SelectedFiles:
    """Return the files that belong to the code snapshot.

    `include`: globs that files must match. Without any, these are all files that git sees, less `leave_out`, Markdown,
    monkey.yaml, CI files and untracked logs. Litter, and files named as credentials are, are left out unless git tracks
    them; the latter also belong where `include` names them in full.

    Raises PlanError for a bad pattern, or one that matches nothing. Raises it for a missing root, or a root in a
    repository that is neither the `project`'s nor a submodule.
    """
    if not root.is_dir():
        raise PlanError(f"expected a directory of code at {root}, found none", hint="check 'code: root:' in the spec")
    globs = _globs(include)
    listed = list_files(root, project)
    tracked = {path for path, known in (listed or {}).items() if known}
    vouched = frozenset((*tracked, *include))
    seen = list(_walk(root)) if listed is None else _without_litter(root, listed)

    def belongs(path: str) -> bool:
        if include:
            return globs.match(path)
        return path not in leave_out and not NOT_CODE.match(path) and (path in tracked or not _LOGS.match(path))

    seen = [path for path in seen if not _NEVER.match(path)]
    wanted = [path for path in seen if not path.endswith("/") and belongs(path)]
    credentials = {path for path in wanted if path not in vouched and is_credential_name(path)}
    files = [path for path in wanted if path not in credentials]
    _check_patterns(root, globs, files, wanted)
    repositories = (path for path in seen if path.endswith("/") and _any(root, path, belongs))
    untracked = frozenset(files) - tracked if listed is not None else frozenset[str]()
    return SelectedFiles(sorted([*files, *repositories]), untracked, vouched, tuple(sorted(credentials)))


def _check_patterns(root: Path, globs: GlobPatterns, files: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise PlanError for a pattern that matches none of the files, or nothing but credentials."""
    for pattern in globs.idle(files):
        if pattern not in globs.idle(wanted):
            raise PlanError(
                f"code.include {pattern!r} matches files under {root} that may hold credentials, and no others",
                hint="name a file in full where jobs need it and it holds no real credential",
            )
        raise PlanError(
            f"expected files under {root} for code.include {pattern!r}, found none",
            hint="patterns are relative to code.root; files that git ignores are never included, nor are those of a "
            "repository that is no submodule",
        )


def _any(root: Path, directory: str, belongs: Callable[[str], bool]) -> bool:
    """Return whether any file of a directory belongs; True for a directory that cannot be read, as it may have some."""
    try:
        return any(map(belongs, _walk(root, directory.rstrip("/"))))
    except OSError:
        return True


def _globs(include: Sequence[str]) -> GlobPatterns:
    try:
        return GlobPatterns(include)
    except ValueError as exc:
        raise PlanError(f"code.include: {exc}", hint='write patterns such as "src/**/*.py"') from exc


def _without_litter(root: Path, listed: Mapping[str, bool]) -> list[str]:
    """Return the paths without untracked litter, and without untracked files in directories with a mark (`_MARKS`)."""
    untracked = [path for path, tracked in listed.items() if not tracked]
    made = tuple(path[: -len(mark)] for path in untracked for mark in _MARKS if path.endswith("/" + mark))
    return [path for path, tracked in listed.items() if tracked or not (path.startswith(made) or _LITTER.match(path))]


def _walk(root: Path, base: str = "") -> Iterator[str]:
    """Yield every path below `root` except litter, and directories with a mark: virtual environments and caches."""
    waiting = [base]
    while waiting:  # no recursion: a program may have left directories thousands deep
        base = waiting.pop()
        with os.scandir(f"{root}/{base}") as entries:
            names = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        if base and not _MARKS.isdisjoint(name for name, _ in names):
            continue
        for name, is_directory in names:
            path = f"{base}/{name}" if base else name
            if _LITTER.match(path) or _NEVER.match(path):
                continue
            if is_directory:
                waiting.append(path)
            else:
                yield path
