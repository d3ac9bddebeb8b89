# ruff: noqa: PTH101, PTH102, PTH112, PTH120
# Paths are plain strings here, as those of workspaces are.
"""Files and directories in which a job can put anything: reached by descriptors, and never through one of its links.

A look at a path and its use are two steps, and a job may put a link there between them. A descriptor stays what it is.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

#: Opens a directory whose entries are to be read; and one that is only a step on the way, which need not be readable.
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_STEP = _DIRECTORY | getattr(os, "O_PATH", 0)
_REGULAR = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
#: What systems answer where a link, or a file, stands in place of a directory.
_NO_DIRECTORY = frozenset((errno.ELOOP, errno.EMLINK, errno.ENOTDIR))


def open_entry(name: str, at: int | None = None, *, step: bool = False) -> int:
    """Return a descriptor of the directory `name` in the directory `at`.

    `step`: it is used to reach what is in it, and not read itself. Raises OSError where it is a link, or no directory.
    """
    try:
        return os.open(name, _STEP if step else _DIRECTORY, dir_fd=at)
    except OSError as exc:
        if exc.errno in _NO_DIRECTORY:
            raise NotADirectoryError(errno.ENOTDIR, "is a link, or no directory", name) from exc
        raise


def open_directory(path: str, *, step: bool = False) -> int:
    """Return a descriptor of a directory that a job can replace. Raises OSError where it is a link, or no directory.

    So it does where the directory above is one: a job can replace the whole of its workspace.
    """
    above, _, name = path.rpartition("/")
    root = open_entry(above or ("/" if path.startswith("/") else "."), step=True)
    try:
        return open_entry(name, root, step=step)
    except OSError as exc:
        exc.filename = path
        raise
    finally:
        os.close(root)


@contextlib.contextmanager
def hold_below(root: str | os.PathLike[str], path: str, *, make: bool = False) -> Iterator[int]:
    """Hold a descriptor of the directory at the relative path `path` below `root`, which alone may be a link.

    `make`: missing directories are made, for this user alone whatever the umask. Raises OSError that names the link.
    """
    where = os.fspath(root)
    if make:
        make_private_directory(where)
    fd = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in filter(None, path.split("/")):
            where = f"{where}/{part}"
            try:
                inner = _open_made(part, fd) if make else open_entry(part, fd)
            except OSError as exc:
                exc.filename = where
                raise
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


def _open_made(name: str, at: int) -> int:
    try:
        return open_entry(name, at)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, stat.S_IRWXU, dir_fd=at)
    return open_entry(name, at)


def make_private_directory(path: str | os.PathLike[str]) -> None:
    """Make a directory, and those above it that are missing, for this user alone (0700). Raises OSError."""
    if not os.path.isdir(path):
        make_private_directory(os.path.dirname(path) or ".")
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, stat.S_IRWXU)


def check_below(root: str | os.PathLike[str], paths: Iterable[str]) -> None:
    """Raise OSError that names a link in place of one of these directories below `root`; they may be missing."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError), hold_below(root, path):
            pass


def is_directory(path: str) -> bool:
    """Say whether `open_directory` would find one now."""
    try:
        return all(stat.S_ISDIR(os.lstat(each).st_mode) for each in (path.rpartition("/")[0] or "/", path))
    except OSError:
        return False


def walk_tree(root: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each directory, the names of those in it, and all its other names, as `os.walk` does, top down.

    It does not recurse, as `os.walk` did before Python 3.12: a tree may be thousands of directories deep. What cannot
    be read is passed over: it is gone, or deeper than a path may be long.
    """
    waiting = [root]
    while waiting:
        directory, names, others = waiting.pop(), list[str](), list[str]()
        try:
            with os.scandir(directory) as found:
                for entry in found:
                    (names if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
        except OSError:
            continue
        yield directory, names, others
        waiting += [f"{directory}/{name}" for name in names]


def open_regular(path: str, flags: int) -> int:
    """Return a descriptor of a file where a job can put anything. Raises OSError where it is no regular file.

    Never waits (for the other end of a pipe), never follows a link, nor one in place of the two directories above.
    """
    above, _, name = path.rpartition("/")
    directory = open_directory(above, step=True)
    try:
        return _open_file(name, flags, directory)
    except OSError as exc:
        exc.filename = path
        raise
    finally:
        os.close(directory)


def load_json(path: str, most: int) -> Any:
    """Return what a file of JSON holds where a job can put anything; see `open_regular`.

    `most`: bytes that are read. Raises OSError where it is no regular file; ValueError where it has more, or no JSON.
    """
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"{path}: has more than {most} bytes")
    try:
        return json.loads(data)
    except RecursionError as exc:
        raise ValueError(f"{path}: lists lie too deep in lists") from exc


def _open_file(name: str, flags: int, at: int) -> int:
    fd = os.open(name, flags | _REGULAR, 0o644, dir_fd=at)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "is no regular file", name)


class HeldDirectory:
    """A directory of a job's, held by a descriptor. Nothing below it is reached through a link. For one thread."""

    def __init__(self, path: str) -> None:
        """Hold the directory at `path`; see `open_directory`, which may raise OSError."""
        self._path = path
        self.fd = open_directory(path)
        #: The directory below that was used last: the next one mostly is the same, or lies in it.
        self._below, self._inner = "", self.fd

    def __enter__(self) -> HeldDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self._hold("", self.fd)
        os.close(self.fd)

    def _hold(self, below: str, fd: int) -> None:
        if self._inner != self.fd:
            os.close(self._inner)
        self._below, self._inner = below, fd

    def descend(self, below: str) -> int:
        """Return a descriptor of the directory at the relative path `below`, valid until the next call of a method.

        Raises OSError where one on the way is a link, or no directory.
        """
        if self._below and not f"{below}/".startswith(f"{self._below}/"):
            self._hold("", self.fd)
        for part in below[len(self._below) :].split("/"):
            if part:
                try:
                    inner = open_entry(part, self._inner)
                except OSError as exc:
                    exc.filename = f"{self._path}/{below}"
                    raise
                self._hold(f"{self._below}/{part}".lstrip("/"), inner)
        return self._inner

    def reach(self, path: str) -> tuple[int, str]:
        """Return a descriptor of the directory in which `path` lies, valid as in `descend`, and the name there."""
        below, _, name = path.rpartition("/")
        return self.descend(below), name

    def open_regular(self, path: str, flags: int) -> int:
        """Return a descriptor of the file at the relative path `path`; see the function of this name."""
        at, name = self.reach(path)
        try:
            return _open_file(name, flags, at)
        except OSError as exc:
            exc.filename = f"{self._path}/{path}"
            raise


class UntrustedFile(NamedTuple):
    """A file that a job made, at the relative path `path` in the directory `directory` of its workspace."""

    directory: str
    path: str

    def open(self) -> int:
        """Return a descriptor to read it. Raises OSError where it is no regular file, or lies behind a link."""
        with HeldDirectory(self.directory) as held:
            return held.open_regular(self.path, os.O_RDONLY)

    def read(self, most: int) -> bytes:
        """Return the first bytes of it, at most `most`. Raises OSError as `open`."""
        with os.fdopen(self.open(), "rb") as file:
            return file.read(most)


def name_descriptor(fd: int) -> str:
    """Return a path by which this process can open the same file again, whatever is under its name by now."""
    if sys.platform == "darwin":  # pragma: no cover - it has no /proc, and says where a file is by now
        return os.fsdecode(fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    return f"/proc/self/fd/{fd}"


def set_full_rights(name: str, at: int | None = None) -> None:
    """Give this user all rights to a directory, but never to what a link leads to. Raises OSError."""
    if sys.platform == "darwin":  # pragma: no cover
        os.chmod(name, stat.S_IRWXU, dir_fd=at, follow_symlinks=False)
        return
    fd = open_entry(name, at, step=True)  # one that may not be read can still be opened so
    try:
        os.chmod(name_descriptor(fd), stat.S_IRWXU)
    finally:
        os.close(fd)


def move_entry(name: str, to: str, at: int | None = None, into: int | None = None) -> None:
    """Rename what is in the directory `at` to `to` in the directory `into`. Raises OSError.

    It may be a link, which is moved itself, or a directory whatever rights it has.
    """
    try:
        os.rename(name, to, src_dir_fd=at, dst_dir_fd=into)
    except PermissionError:  # only who may write to a directory may move it
        set_full_rights(name, at)
        os.rename(name, to, src_dir_fd=at, dst_dir_fd=into)


def move_directory(path: str, to: str, into: int) -> None:
    """Rename a directory that a job can replace to `to` in the directory `into`, whatever rights the job left it.

    Raises OSError as `open_directory`.
    """
    above, _, name = path.rpartition("/")
    root = open_entry(above, step=True)
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=root, follow_symlinks=False).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "is a link, or no directory", path)
        move_entry(name, to, root, into)
    finally:
        os.close(root)
