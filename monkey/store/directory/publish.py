# ruff: noqa: PTH105, PTH116
# Paths are plain strings here: pathlib costs as much as the system calls.
"""Written aside, then published: the only way in which a file gets under a key."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator

from monkey.atomic_write import write_all
from monkey.removal import remove_empty_directory, remove_file
from monkey.store.directory.root import READ, DirectoryRoot

#: Seconds without a change after which a file aside is taken for a dead writer's. (One that lives and loses its file
#: so is told that the store is unavailable, and writes it again.)
STALE = 24 * 3600.0

#: Bytes a step of a copy moves.
_CHUNK_BYTES = 16 * 1024 * 1024
#: Bytes from which on a file is asked for holes.
_SPARSE_BYTES = 1 << 20

#: What copy_file_range answers where it is not the way: other file systems, old kernels, special files.
_COPY_ANOTHER_WAY = frozenset(
    (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF, errno.ETXTBSY)
)

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def open_aside(place: DirectoryRoot) -> tuple[str, int]:
    """Return a new file aside and its descriptor; raises OSError, StoreError."""
    temp = place.temp()
    try:
        return temp, os.open(temp, _CREATE, 0o666)
    except FileNotFoundError:
        place.make_parents(temp)
        return temp, os.open(temp, _CREATE, 0o666)


def write_aside(place: DirectoryRoot, data: bytes) -> tuple[str, int]:
    """Return a new file aside that holds `data`, and its descriptor; raises OSError, StoreError, and leaves nothing."""
    temp, fd = open_aside(place)
    try:
        write_all(fd, data)
    except BaseException:
        os.close(fd)
        drop_aside(temp)
        raise
    return temp, fd


def publish_aside(
    place: DirectoryRoot, temp: str, target: str, *, replace: bool, written: os.stat_result | None = None
) -> bool:
    """Give the file aside its key's name; False if something was there that is not to be replaced.

    `written`: the file aside, by its descriptor. Missing directories are made, in our store only. Raises OSError,
    StoreError: then nothing was published.
    """
    place.expect_parents(target)
    try:
        return _publish(temp, target, replace)
    except FileNotFoundError:
        if replace and written is not None and _renamed(place, target, written):
            return True
        place.make_parents(target)
        return _publish(temp, target, replace)


def _renamed(place: DirectoryRoot, target: str, written: os.stat_result) -> bool:
    """Tell whether our rename was made although the file aside is missing: its answer was lost, and it was repeated."""
    place.open_ancestors(target)  # so that the server is asked
    try:
        fd = os.open(target, READ)
    except OSError:
        return False
    try:
        return os.path.samestat(os.fstat(fd), written)
    finally:
        os.close(fd)


def _publish(temp: str, target: str, replace: bool) -> bool:
    if replace:
        os.replace(temp, target)
        return True
    try:
        os.link(temp, target)
    except FileExistsError:
        return _linked(temp, target)
    return True


def _linked(temp: str, target: str) -> bool:
    """Tell whether our link was made although the answer was "exists": on NFS, a repeated request meets itself."""
    fd = os.open(temp, os.O_RDONLY | os.O_CLOEXEC)  # opened again, so that the server is asked
    try:
        if os.fstat(fd).st_nlink == 2:
            return True
    finally:
        os.close(fd)
    if stat.S_ISDIR(os.stat(target, follow_symlinks=False).st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    return False


def drop_aside(path: str) -> None:
    """Remove a file aside; whatever hinders that, it only takes space."""
    with contextlib.suppress(OSError):
        remove_file(path)


def remove_stale(place: DirectoryRoot) -> None:
    """Remove what dead writers left aside, by the file system's own clock."""
    with contextlib.suppress(OSError):
        # The directory changed when its newest file was made: that is "now", whatever this machine's clock says.
        _remove_older(place.temps, os.stat(place.temps).st_mtime - STALE)


def _remove_older(directory: str, than: float) -> None:
    waiting, emptied = [directory], []
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as found:
            for entry in found:
                with contextlib.suppress(OSError):
                    old = entry.stat(follow_symlinks=False).st_mtime < than
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                        emptied += [entry.path] if old else []
                    elif old:
                        remove_file(entry.path)
    for path in reversed(emptied):  # what is below comes later
        with contextlib.suppress(OSError):
            remove_empty_directory(path)


def copy_bytes(source: int, target: int) -> None:
    """Copy a file into an empty one, by reference where the file systems can; no inode is shared. Holes stay holes."""
    status = os.fstat(source)
    if status.st_size < _SPARSE_BYTES or status.st_blocks * 512 >= status.st_size or not hasattr(os, "SEEK_HOLE"):
        _copy_range(source, target, None)
        return
    for start, end in _list_extents(source, status.st_size):
        os.lseek(source, start, os.SEEK_SET)
        os.lseek(target, start, os.SEEK_SET)
        _copy_range(source, target, end - start)
    os.ftruncate(target, status.st_size)


def _list_extents(file: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield where the data of a file begin and end, between its holes."""
    end = 0
    while end < size:
        try:
            start = os.lseek(file, end, os.SEEK_DATA)
            end = min(os.lseek(file, start, os.SEEK_HOLE), size)
        except OSError as exc:
            if exc.errno == errno.ENXIO:  # the rest is a hole
                return
            raise
        yield start, end


def _copy_range(source: int, target: int, left: int | None) -> None:
    """Copy so many bytes (None: all) from where both descriptors are."""
    many = sys.maxsize if left is None else left
    if hasattr(os, "copy_file_range"):
        try:
            while many and (copied := os.copy_file_range(source, target, min(many, _CHUNK_BYTES * 16))):
                many -= copied
        except OSError as exc:
            if exc.errno not in _COPY_ANOTHER_WAY:
                raise
    # From where it stopped: some file systems say 0 though there is more.
    while many and (data := os.read(source, min(many, _CHUNK_BYTES))):
        write_all(target, data)
        many -= len(data)
