"""Which files are the code of a sweep."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from monkey.errors import PlanError
from monkey.transfer.code.git_files import list_files
from monkey.transfer.globs import GlobPatterns

#: Left out unless `code.include` names files: a change of them changes no result. (And the specs, given by path.)
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

#: What people keep keys and passwords in: left out like `NOT_CODE`, unless git tracks it. Code lies in the store.
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

#: Never code, whoever lists it: our own store and git's, and what DVC keeps beside its settings (and has git ignore).
_NEVER = GlobPatterns(("**/.monkey", "**/.git", "**/.dvc/tmp", "**/.dvc/cache", "**/.dvc/config.local"))

#: What programs leave behind; code only where git tracks it.
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


#: Says of a directory that `monkey fetch` made it: or each fetch would make all jobs stale.
FETCHED = ".monkey-fetched"
#: Files that say of their directory that it is a virtual environment, a cache, or fetched.
_MARKS = frozenset(("pyvenv.cfg", "CACHEDIR.TAG", FETCHED))


def select_files(
    root: Path, include: Sequence[str], leave_out: Collection[str] = (), project: Path | None = None
) -> list[str]:
    """Return the paths, relative to `root`, '/'-separated and sorted, that belong to the code snapshot.

    `include`: globs that files must match; none: all that git sees less `leave_out`, Markdown, monkey.yaml, CI files
    and, untracked, logs and what keeps keys. Litter is left out unless git tracks it. A path that ends in '/' is a
    repository that is no submodule: files in it would belong, and cannot. Raises PlanError for a bad pattern, one that
    names nothing, a missing root, or one in a repository that is neither the `project`'s nor a submodule.
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
    """Tell whether any file of a directory belongs; one that cannot be looked into may have some."""
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
    """Take out what git does not track and is litter, or lies in a virtual environment or a cache by its own word."""
    untracked = [path for path, tracked in listed.items() if not tracked]
    made = tuple(path[: -len(mark)] for path in untracked for mark in _MARKS if path.endswith("/" + mark))
    return [path for path, tracked in listed.items() if tracked or not (path.startswith(made) or _LITTER.match(path))]


def _walk(root: Path, base: str = "") -> Iterator[str]:
    """Yield every path below `root` but litter, virtual environments and caches."""
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
