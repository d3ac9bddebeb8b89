# Paths are plain strings here: there may be 100,000 of them.
"""Making room in the machine's cache: what was used least recently goes, and never what is in use."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass

from monkey.atomic_write import SUFFIX
from monkey.removal import remove_below, remove_file
from monkey.untrusted_files import check_below, hold_below, move_entry, walk_tree

#: Directories of the cache whose entries can be had again.
_CACHE_KINDS = ("code", "environments", "datasets/trees")
#: The files of datasets by their hash; trees are links to them. And where trees are made.
OBJECTS, ASIDE = "datasets/objects", "datasets/aside"
TRASH = "trash"
#: Directories below the cache in which files are removed, moved or written.
CACHE_DIRECTORIES = (*_CACHE_KINDS, OBJECTS, ASIDE, TRASH, "bundles", "client", "datasets/names", "images")
#: Seconds after which the writer of a file aside has been killed.
HALF_WRITTEN = 3600.0
#: What lies beside an entry.
BESIDE = (".use", ".lock", ".stamp", ".list", ".log", ".failed", ".txt", ".sh", ".constraints")


@dataclass(frozen=True, order=True)
class CacheEntry:
    """Something in the cache: when it was last used (seconds since 1970), where it is, and what it takes in bytes."""

    used: float
    path: str
    size: int


def trim_cache(root: str, most: int, *, urgent: bool = False) -> bool:
    """Remove the least recently used entries until `most` bytes are left; `urgent`: at least one, if any can be.

    Says whether anything was removed. Slow: for another thread. One process at a time does it. Raises OSError.
    """
    guard = _try_lock(f"{root}/trim.lock", wait=urgent)
    if guard < 0:
        return False
    try:
        check_below(root, CACHE_DIRECTORIES)  # a job may have put a link there since the agent started
        freed = _empty_trash(root)
        _drop_half_written(root)
        size = _size(root)
        if size <= most and not (urgent and not freed):
            return freed > 0
        rubbish = _drop_unfinished(root) + _drop_orphans(root)
        freed, size = freed + rubbish, size - rubbish
        for entry in sorted(_entries(root)):
            if size <= most and not (urgent and not freed):
                break
            gone = _evict(root, entry)
            freed, size = freed + gone, size - gone
        return freed > 0
    finally:
        os.close(guard)


def drop_rubbish(root: str) -> None:
    """Remove what is in the trash, and objects that are in no tree. Raises OSError."""
    check_below(root, CACHE_DIRECTORIES)
    _empty_trash(root)
    _drop_orphans(root)


def move_to_trash(root: str, path: str) -> None:
    """Move something to the trash: gone from its place at once, and for good whenever that is emptied.

    Raises OSError, also where a link stands above it.
    """
    above, _, name = path.removeprefix(f"{root}/").rpartition("/")
    with (
        contextlib.suppress(FileNotFoundError),
        hold_below(root, TRASH, make=True) as trash,
        hold_below(root, above) as at,
    ):
        move_entry(name, secrets.token_hex(8), at, trash)


def measure_disk_usage(path: str) -> int:
    """Return what a file or a tree takes of the disk, in bytes; a file that has several names in it counts once."""
    seen: set[int] = set()
    total = _taken(path, seen)
    for directory, names, files in walk_tree(path):
        for name in (*names, *files):
            total += _taken(f"{directory}/{name}", seen)
    return total


def _taken(path: str, seen: set[int]) -> int:
    try:
        status = os.lstat(path)
    except OSError:  # gone, or deeper than a path may be long
        return 0
    if status.st_ino in seen:
        return 0
    if status.st_nlink > 1:
        seen.add(status.st_ino)
    return status.st_blocks * 512


def _try_lock(file: str, *, wait: bool = False) -> int:
    try:
        fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:
        return -1  # there is no cache yet
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return fd
    except BlockingIOError:
        os.close(fd)
        return -1


def _entries(root: str) -> Iterator[CacheEntry]:
    for kind in _CACHE_KINDS:
        with contextlib.suppress(FileNotFoundError), os.scandir(f"{root}/{kind}") as found:
            for item in found:
                if not item.name.startswith(".") and not item.name.endswith(BESIDE):
                    yield _entry(item.path)


def _entry(path: str) -> CacheEntry:
    try:
        with open(f"{path}.use", "rb") as file:  # noqa: PTH123
            used, text = os.fstat(file.fileno()).st_mtime, file.read(32).strip()
    except FileNotFoundError:
        used, text = _changed(path), b""
    return CacheEntry(used, path, int(text) if text.isdigit() else measure_disk_usage(path))


def _changed(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except FileNotFoundError:
        return 0.0


def _size(root: str) -> int:
    trees = f"{root}/datasets/trees/"
    others = sum(entry.size for entry in _entries(root) if not entry.path.startswith(trees))
    return others + sum(status.st_blocks * 512 for _, status in _objects(root))


def _objects(root: str) -> Iterator[tuple[str, os.stat_result]]:
    with contextlib.suppress(FileNotFoundError), os.scandir(f"{root}/{OBJECTS}") as directories:
        for directory in directories:
            if not directory.is_dir(follow_symlinks=False):
                continue
            with os.scandir(directory.path) as found:
                for item in found:
                    with contextlib.suppress(FileNotFoundError):
                        yield item.path, item.stat(follow_symlinks=False)


def _evict(root: str, entry: CacheEntry) -> int:
    """Remove an entry unless it is being used or made; returns how many bytes that gave."""
    use = _try_lock(f"{entry.path}.use")
    if use < 0:
        return 0
    making = _try_lock(f"{entry.path}.lock")
    try:
        if making < 0:
            return 0
        move_to_trash(root, entry.path)
        for end in BESIDE:
            remove_file(entry.path + end)
    finally:
        os.close(use)
        if making >= 0:
            os.close(making)
    freed = _empty_trash(root)
    # Objects may be in other trees, too: what counts is what was given back.
    return freed + _drop_orphans(root) if entry.path.startswith(f"{root}/datasets/") else max(entry.size, 1)


def _drop_unfinished(root: str) -> int:
    """Remove trees whose maker is gone."""
    with contextlib.suppress(FileNotFoundError), os.scandir(f"{root}/{ASIDE}") as found:
        for item in list(found):
            making = _try_lock(f"{root}/datasets/trees/{item.name}.lock")
            if making >= 0:
                move_to_trash(root, item.path)
                os.close(making)
    return _empty_trash(root)


def _drop_half_written(root: str) -> None:
    """Remove what `write_atomically` left aside when it was killed."""
    for kind in _CACHE_KINDS:
        with contextlib.suppress(FileNotFoundError), os.scandir(f"{root}/{kind}") as found:
            for item in list(found):
                old = time.time() - _changed(item.path) > HALF_WRITTEN
                if old and item.name.startswith(".") and item.name.endswith(SUFFIX):
                    remove_file(item.path)


def _drop_orphans(root: str) -> int:
    """Remove objects that are in no tree. Who is just linking one notices, and fetches it again."""
    freed = 0
    for path, status in _objects(root):
        if status.st_nlink == 1:
            with contextlib.suppress(FileNotFoundError):
                remove_file(path)
                freed += status.st_blocks * 512
    return freed


def _empty_trash(root: str) -> int:
    """Remove what is in the trash; returns the bytes given back (files that have another name give none)."""
    freed = 0
    with contextlib.suppress(FileNotFoundError), os.scandir(f"{root}/{TRASH}") as found:
        for item in list(found):
            freed += _only_here(item.path)
            remove_below(root, f"{TRASH}/{item.name}")
    return freed


def _only_here(path: str) -> int:
    freed = 0
    for directory, _, files in walk_tree(path):
        for name in files:
            with contextlib.suppress(OSError):
                status = os.lstat(f"{directory}/{name}")
                freed += status.st_blocks * 512 if status.st_nlink == 1 else 0
    return freed
