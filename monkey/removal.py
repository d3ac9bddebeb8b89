# Names below open directories, which pathlib does not know.
"""The one place that removes files and trees: however deep, whatever rights are missing.

It never follows a link, and never crosses into another file system or over a mount.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import secrets
import stat
from collections.abc import Iterator

from monkey.untrusted_files import hold_below, move_entry, open_entry, set_full_rights


def remove_file(path: str | os.PathLike[str], at: int | None = None) -> bool:
    """Remove a file, or a link, in the directory `at`; return whether it was there. Raises OSError."""
    try:
        os.unlink(path, dir_fd=at)
    except FileNotFoundError:
        return False
    return True


def remove_empty_directory(path: str | os.PathLike[str], at: int | None = None) -> None:
    """Remove a directory that has nothing in it, in the directory `at`. Raises OSError where it has."""
    os.rmdir(path, dir_fd=at)


def remove_tree(path: str | os.PathLike[str], at: int | None = None) -> bool:
    """Remove a tree (or a file, or a link) in the directory `at` as far as possible; return whether nothing is left.

    Directories are moved up into the root before they are emptied. So nothing recurses, no path grows too long, and an
    interrupted removal leaves nothing elsewhere.
    """
    name = os.fspath(path)
    with contextlib.suppress(OSError):
        if not _remove_at_once(name, at):
            root = _open(name, at)
            try:
                _empty(root)
            finally:
                os.close(root)
            os.rmdir(name, dir_fd=at)
    try:
        os.stat(name, dir_fd=at, follow_symlinks=False)
    except OSError:
        return True
    return False


def remove_below(root: str | os.PathLike[str], path: str) -> bool:
    """Remove what is at the relative path `path` below `root`, as `remove_tree` does.

    Nothing is removed behind a link that stands on the way: then, this returns False.
    """
    above, _, name = path.rpartition("/")
    try:
        with hold_below(root, above) as at:
            return remove_tree(name, at)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _remove_at_once(name: str, at: int | None = None) -> bool:
    """Remove a file, a link or an empty directory; False for a directory with entries.

    Raises OSError for a mount point: the kernel says that it is busy, also for one of the same file system.
    """
    try:
        os.rmdir(name, dir_fd=at)
    except NotADirectoryError:
        os.unlink(name, dir_fd=at)
    except OSError as exc:
        if exc.errno == errno.EBUSY:
            raise
        return False
    return True


def _empty(root: int) -> None:
    prefix, device = secrets.token_hex(8), os.fstat(root).st_dev
    names = (f"{prefix}.{n}" for n in itertools.count())
    waiting = _strip(root, root, names)
    while waiting:
        name = waiting.pop()
        with contextlib.suppress(OSError):
            if _remove_at_once(name, root):
                continue
            directory = _open(name, root, device)
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
                    move_entry(entry.name, name, directory, root)
                moved.append(name)
            else:
                os.unlink(entry.name, dir_fd=directory)
    return moved


def _open(name: str, at: int | None = None, device: int | None = None) -> int:
    """Open a directory, after giving this user the rights to change it.

    Raises OSError where it is a link, or on another file system than `device`.
    """
    try:
        fd = open_entry(name, at)
    except PermissionError:
        set_full_rights(name, at)
        fd = open_entry(name, at)
    try:
        status = os.fstat(fd)
        if device not in (None, status.st_dev):
            raise OSError(errno.EXDEV, "is another file system, and stays", name)
        if status.st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.fchmod(fd, stat.S_IRWXU)
    except BaseException:
        os.close(fd)
        raise
    return fd
