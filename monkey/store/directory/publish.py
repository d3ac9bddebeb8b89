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
from monkey.store.content.hash_worker import create_file
from monkey.store.directory.listing import LISTED, list_entries
from monkey.store.directory.open_root import OpenRoot
from monkey.store.directory.root import READ, DirectoryRoot
from monkey.store.keys import RESERVED

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

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def open_aside(inside: OpenRoot, name: str) -> int:
    """Return a descriptor of a new file aside. Raises OSError."""
    return create_file(name, _CREATE, inside.aside)


def write_aside(inside: OpenRoot, name: str, data: bytes) -> int:
    """Return a descriptor of a new file aside that holds `data`. Raises OSError, and leaves nothing then."""
    fd = open_aside(inside, name)
    try:
        write_all(fd, data)
    except BaseException:
        os.close(fd)
        inside.remove_aside(name)
        raise
    return fd


def publish_aside(
    inside: OpenRoot, temp: str, key: str, *, replace: bool, written: os.stat_result | None = None
) -> bool:
    """Give the file aside its key's name; False if something was there that is not to be replaced.

    `written`: the file aside, by its descriptor. Missing directories are made. Raises OSError: then nothing was
    published.
    """
    try:
        return _publish(inside, temp, key, replace)
    except OSError as exc:
        if exc.errno not in (errno.ENOENT, errno.ESTALE):
            raise
        inside.forget()
        if replace and written is not None and _renamed(inside, key, written):
            return True
        return _publish(inside, temp, key, replace)


def _renamed(inside: OpenRoot, key: str, written: os.stat_result) -> bool:
    """Tell whether our rename was made although the file aside is missing: its answer was lost, and it was repeated."""
    try:
        os.close(inside.open(key.rpartition("/")[0] or ".", LISTED))  # so that the server is asked
        fd = inside.open(key, READ)
    except OSError:
        return False
    try:
        return os.path.samestat(os.fstat(fd), written)
    finally:
        os.close(fd)


def _publish(inside: OpenRoot, temp: str, key: str, replace: bool) -> bool:
    directory, name = inside.reach(key, make=True)
    if replace:
        os.replace(temp, name, src_dir_fd=inside.aside, dst_dir_fd=directory)
        return True
    try:
        os.link(temp, name, src_dir_fd=inside.aside, dst_dir_fd=directory, follow_symlinks=False)
    except FileExistsError:
        return _linked(inside, temp, directory, name)
    return True


def _linked(inside: OpenRoot, temp: str, directory: int, name: str) -> bool:
    """Tell whether our link was made although the answer was "exists": on NFS, a repeated request meets itself."""
    fd = os.open(temp, READ | os.O_NOFOLLOW, dir_fd=inside.aside)  # opened again, so that the server is asked
    try:
        if os.fstat(fd).st_nlink == 2:
            return True
    finally:
        os.close(fd)
    if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    return False


def remove_stale(place: DirectoryRoot) -> None:
    """Remove what dead writers left aside, by the file system's own clock. Raises StoreError."""
    with place.enter() as inside, contextlib.suppress(OSError):
        # The directory changed when its newest file was made: that is "now", whatever this machine's clock says.
        _remove_older(inside, os.fstat(inside.aside).st_mtime - STALE)


def _remove_older(inside: OpenRoot, than: float) -> None:
    waiting = [RESERVED]
    emptied = []
    while waiting:
        directory = waiting.pop()
        with contextlib.suppress(OSError), list_entries(inside, directory) as found:
            for entry in found:
                path = f"{directory}/{entry.name}"
                with contextlib.suppress(OSError):
                    old = entry.stat(follow_symlinks=False).st_mtime < than
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(path)
                        emptied += [path] if old else []
                    elif old:
                        at, name = inside.reach(path)
                        remove_file(name, at)
    for path in reversed(emptied):  # what is below comes later
        with contextlib.suppress(OSError):
            at, name = inside.reach(path)
            remove_empty_directory(name, at)


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
