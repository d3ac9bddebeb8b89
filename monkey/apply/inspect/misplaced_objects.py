"""What stands in a directory store where monkey never puts it: links, special files, objects that are too large."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterator

from monkey.errors import ObjectTooLarge
from monkey.protocol.layout import Keys
from monkey.store.directory.listing import list_entries
from monkey.store.directory.open_root import OpenRoot
from monkey.store.directory.store import DirectoryStore
from monkey.store.object_limits import check_size

#: Directories of a job, and of the store, in which objects may have any size and be many: those who use them look.
_UNSEEN = ("out", "checkpoints", "files", "code", "tmp")
#: Messages that are of use at once.
_MOST = 10


async def list_misplaced(store: DirectoryStore, keys: Keys, *, quick: bool = False) -> list[str]:
    """Return a message for each such thing in the store, at most ten. Raises StoreError.

    `quick`: only for links and special files, and not for those below jobs, which may be many.
    """
    return await asyncio.to_thread(_look, store, keys, quick)


def _look(store: DirectoryStore, keys: Keys, quick: bool) -> list[str]:
    found: list[str] = []
    waiting = ["", "files", keys.root.rstrip("/")]
    unseen = (*_UNSEEN, "jobs") if quick else _UNSEEN
    with store.place.enter() as inside:
        while waiting and len(found) < _MOST:
            directory = waiting.pop()
            try:
                found += _look_into(inside, directory, waiting, unseen, sizes=not quick)
            except FileNotFoundError:  # it has none, or not any more
                continue
            except OSError as exc:
                found.append(store.place.translate(exc, directory).message)
    return found[:_MOST]


def _look_into(
    inside: OpenRoot, directory: str, waiting: list[str], unseen: Collection[str], *, sizes: bool
) -> Iterator[str]:
    with list_entries(inside, directory) as entries:
        for entry in entries:
            key = f"{directory}/{entry.name}".lstrip("/")
            if entry.is_symlink():
                yield f"{key!r} in the store is a link to {os.readlink(entry.name, dir_fd=inside.reach(key)[0])!r}"
            elif entry.is_dir(follow_symlinks=False):
                if directory.startswith("projects/") and entry.name not in unseen:
                    waiting.append(key)
            elif not entry.is_file(follow_symlinks=False):
                yield f"{key!r} in the store is no file: a pipe, a socket or a device"
            elif sizes:
                try:
                    check_size(key, entry.stat(follow_symlinks=False).st_size)
                except ObjectTooLarge as exc:
                    yield exc.message
