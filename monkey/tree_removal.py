# ruff: noqa: PTH106, PTH108
# Names below open directories, which pathlib does not know.
"""The removal of trees from untrusted programs: however deep, whatever rights are missing, never through a link."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import stat
from collections.abc import Iterator

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(path: str) -> bool:
    """Remove a tree (or a file, or a link) as far as possible; return whether nothing of it is left.

    Directories are moved up into the root before they are emptied. So nothing recurses, no path grows too long, and an
    interrupted removal leaves nothing elsewhere.
    """
    with contextlib.suppress(OSError):
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            return True
        root = _open(path)
        try:
            _empty(root)
        finally:
            os.close(root)
        os.rmdir(path)
    return not os.path.lexists(path)


def _empty(root: int) -> None:
    prefix = secrets.token_hex(8)
    names = (f"{prefix}.{n}" for n in itertools.count())
    waiting = _strip(root, root, names)
    while waiting:
        name = waiting.pop()
        with contextlib.suppress(OSError):
            directory = _open(name, root)
            try:
                waiting += _strip(directory, root, names)
            finally:
                os.close(directory)
            os.rmdir(name, dir_fd=root)


def _strip(directory: int, root: int, names: Iterator[str]) -> list[str]:
    """Remove a directory's files and move its directories into the root; return the names of these there."""
    moved = []
    with os.scandir(directory) as found:
        entries = list(found)
    for entry in entries:
        with contextlib.suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                name = entry.name if directory == root else next(names)
                if directory != root:
                    _move(entry.name, directory, name, root)
                moved.append(name)
            else:
                os.unlink(entry.name, dir_fd=directory)
    return moved


def _move(name: str, directory: int, to: str, root: int) -> None:
    try:
        os.rename(name, to, src_dir_fd=directory, dst_dir_fd=root)
    except PermissionError:  # only who may write to a directory may move it
        os.chmod(name, stat.S_IRWXU, dir_fd=directory)
        os.rename(name, to, src_dir_fd=directory, dst_dir_fd=root)


def _open(name: str, parent: int | None = None) -> int:
    """Open a directory, after giving this user the rights to change it. Raises OSError."""
    status = os.lstat(name) if parent is None else os.stat(name, dir_fd=parent, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(name, stat.S_IRWXU, dir_fd=parent)
    return os.open(name, _OPEN, dir_fd=parent)
