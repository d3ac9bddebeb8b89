"""The selection of the files that are the code of a sweep."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from monkey.errors import PlanError
from monkey.transfer.code.git_files import list_files
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

#: Files with keys and passwords: left out like `NOT_CODE`, unless git tracks them. The store would have them.
_KEYS = GlobPatterns(
    (
        "**/.env",
        "**/.env.*",
        "**/.envrc",
        "**/.netrc",
        "**/.pypirc",
        "**/.aws",
        "**/.ssh",
        "**/*.pem",
        "**/id_rsa",
        "**/id_ecdsa",
        "**/id_ed25519",
    )
)

#: Never code, even if listed: our own store, git's, and DVC's files beside its settings (which git ignores).
_NEVER = GlobPatterns(("**/.monkey", "**/.git", "**/.dvc/tmp", "**/.dvc/cache", "**/.dvc/config.local"))

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


#: Marks a directory that `monkey fetch` made: it is no code, or each fetch would make all jobs stale.
FETCHED = ".monkey-fetched"
#: Files that mark their directory as a virtual environment, a cache, or fetched.
_MARKS = frozenset(("pyvenv.cfg", "CACHEDIR.TAG", FETCHED))


def select_files(
    root: Path, include: Sequence[str], leave_out: Collection[str] = (), project: Path | None = None
) -> list[str]:
    """Return the paths, relative to `root`, '/'-separated and sorted, that belong to the code snapshot.

    `include`: globs that files must match. Without any, these are all files that git sees, less `leave_out`, Markdown,
    monkey.yaml, CI files and untracked files with logs or keys. Litter is left out unless git tracks it. A path that
    ends in '/' is a repository that is no submodule: files in it would belong, and cannot.

    Raises PlanError for a bad pattern, or one that matches nothing. Raises it for a missing root, or a root in a
    repository that is neither the `project`'s nor a submodule.
    """
    if not root.is_dir():
        raise PlanError(f"expected a directory of code at {root}, found none", hint="check 'code: root:' in the spec")
    globs = _globs(include)
    listed = list_files(root, project)
    tracked = {path for path, known in (listed or {}).items() if known}
    seen = list(_walk(root)) if listed is None else _without_litter(root, listed)

    def belongs(path: str) -> bool:
        if include:
            return globs.match(path)
        ours = path not in leave_out and not NOT_CODE.match(path)
        return ours and (path in tracked or not (_LOGS.match(path) or _KEYS.match(path)))

    seen = [path for path in seen if not _NEVER.match(path)]
    files = [path for path in seen if not path.endswith("/") and belongs(path)]
    if idle := globs.idle(files):
        raise PlanError(
            f"expected files under {root} for code.include {idle[0]!r}, found none",
            hint="patterns are relative to code.root; files that git ignores are never included, nor are those of a "
            "repository that is no submodule",
        )
    return sorted([*files, *(path for path in seen if path.endswith("/") and _any(root, path, belongs))])


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
    with os.scandir(root / base) as entries:
        names = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    if base and not _MARKS.isdisjoint(name for name, _ in names):
        return
    for name, is_directory in names:
        path = f"{base}/{name}" if base else name
        if _LITTER.match(path) or _NEVER.match(path):
            continue
        if is_directory:
            yield from _walk(root, path)
        else:
            yield path
