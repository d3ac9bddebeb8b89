"""Listing a directory tree as a flat space of keys."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from monkey.store.directory.open_root import OpenRoot
from monkey.store.keys import RESERVED, is_encodable
from monkey.store.replacement_stamp import extract_stamp
from monkey.store.store_port import ListedObject

#: What NFS clients call a file that was removed while somebody had it open.
_NFS_REMOVED = ".nfs"


#: Flags to open a directory whose entries are to be read.
LISTED = os.O_RDONLY | os.O_DIRECTORY


@contextmanager
def list_entries(inside: OpenRoot, directory: str) -> Iterator[Iterator[os.DirEntry[str]]]:
    """Give the entries of a directory below the root ('' for the root's own). Raises OSError as `OpenRoot.reach`."""
    fd = inside.open(directory or ".", LISTED)
    try:
        with os.scandir(fd) as entries:
            yield entries
    finally:
        os.close(fd)


def walk_keys(inside: OpenRoot, directory: str, prefix: str, after: str) -> Iterator[ListedObject]:
    """Yield, in no order, every file below the key `directory` whose key has `prefix` and sorts after `after`.

    `directory` is '' for the root. What is removed meanwhile is left out. Raises OSError as `OpenRoot.reach`.
    """
    waiting = [directory]
    while waiting:  # no recursion: whoever may write to the store may nest directories deeper than that goes
        directory = waiting.pop()
        base = directory + "/" if directory else ""
        try:
            with list_entries(inside, directory) as entries:
                yield from _walk_entries(entries, base, prefix, after, waiting)
        except (FileNotFoundError, NotADirectoryError):
            continue


def _walk_entries(
    entries: Iterator[os.DirEntry[str]], base: str, prefix: str, after: str, waiting: list[str]
) -> Iterator[ListedObject]:
    """Yield the objects among the entries of one directory, and add its directories to `waiting`."""
    for entry in entries:
        name = entry.name
        key = base + name
        if entry.is_dir(follow_symlinks=False):
            if may_hold_keys(key + "/", prefix, after) and key != RESERVED and is_encodable(name):
                waiting.append(key)
        elif key > after and key.startswith(prefix) and _is_object(entry):
            try:
                found = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            yield ListedObject(key, found.st_size, _version(found))


def _version(found: os.stat_result) -> str:
    # An inode may be used again at once, and a client by SSH sets times to whole seconds: then the stamp alone tells.
    return f"{found.st_mtime_ns}-{found.st_ino}-{found.st_size}-{extract_stamp(int(found.st_atime))}"


def _is_object(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False) and not is_hidden(entry.name) and is_encodable(entry.name)


def is_hidden(name: str) -> bool:
    """Tell whether a file of this name is no object, but something of the file system's."""
    return name.startswith(_NFS_REMOVED)


def may_hold_keys(directory: str, prefix: str, after: str) -> bool:
    """Tell whether keys below `directory` (it ends in '/') can have `prefix` and sort after `after`."""
    if not (directory.startswith(prefix) or prefix.startswith(directory)):
        return False
    return directory > after or after.startswith(directory)
