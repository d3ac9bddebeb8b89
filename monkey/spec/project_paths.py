"""Project files that a plan reads: the branch of a stranger may have links there that lead to private keys."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from monkey.errors import MonkeyError


def resolve_in_project(path: Path, root: Path) -> Path:
    """Return the real path of `path`. Raises ValueError where that is outside of the project `root`, or in `.git`."""
    # Not resolve(), which raises for links in a circle: whoever opens the file is told so by an OSError.
    real, top = (Path(os.path.realpath(each)) for each in (path, root))
    if not real.is_relative_to(top):
        raise ValueError("it is outside of the project")
    if ".git" in real.relative_to(top).parts:
        raise ValueError("it is one of git's own")
    return real


def is_project_directory(path: Path, root: Path) -> bool:
    """Return whether `path` is a directory of the project at `root`."""
    try:
        return resolve_in_project(path, root).is_dir()
    except ValueError:
        return False


def make_project_directory(path: Path, root: Path) -> None:
    """Make a directory of the project at `root`. Raises OSError, and MonkeyError where a link leads out of it."""
    try:
        resolve_in_project(path, root)
    except ValueError as exc:
        raise MonkeyError(f"nothing is written to {path}: {exc}", hint="remove the link that leads there") from exc
    path.mkdir(parents=True, exist_ok=True)


def read_regular_file(path: Path, most: int) -> bytes:
    """Return the first `most` bytes of a regular file. Raises OSError, and ValueError for any other file."""
    # Not blocking: the open of a pipe that nobody writes to would never return.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no regular file")
        return file.read(most)
