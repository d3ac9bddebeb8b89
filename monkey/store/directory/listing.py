"""Listing a directory tree as a flat space of keys."""

from __future__ import annotations

import os
from collections.abc import Iterator

from monkey.store.keys import RESERVED, is_encodable
from monkey.store.replacement_stamp import extract_stamp
from monkey.store.store_port import ListedObject

#: What NFS clients call a file that was removed while somebody had it open.
_NFS_REMOVED = ".nfs"


def walk_keys(path: str, directory: str, prefix: str, after: str) -> Iterator[ListedObject]:
    """Yield, in no order, every file below `path` whose key has `prefix` and sorts after `after`.

    `directory` is the key of `path` ('' for the root). What is removed meanwhile is left out. Raises OSError.
    """
    waiting = [(path, directory)]
    while waiting:  # no recursion: whoever may write to the store may nest directories deeper than that goes
        path, directory = waiting.pop()
        base = directory + "/" if directory else ""
        try:
            entries = os.scandir(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        with entries:
            for entry in entries:
                name = entry.name
                key = base + name
                if entry.is_dir(follow_symlinks=False):
                    if may_hold_keys(key + "/", prefix, after) and key != RESERVED and is_encodable(name):
                        waiting.append((entry.path, key))
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
