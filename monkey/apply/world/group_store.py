"""Whether people may write a store in a directory that they share: looked at before anything is uploaded."""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from monkey.errors import StoreForbidden
from monkey.protocol.layout import Keys
from monkey.store.content.hash_worker import is_shared
from monkey.store.directory.store import DirectoryStore
from monkey.store.keys import RESERVED
from monkey.store.store_port import Store


def check_rights(store: Store, keys: Keys) -> None:
    """Raise StoreForbidden where this user may not write in a directory of the store."""
    if not isinstance(store, DirectoryStore):
        return
    for directory, _ in _list_directories(store, keys):
        if not os.access(directory, os.W_OK | os.X_OK):
            raise StoreForbidden(f"{directory}, of the store, cannot be written by this user", hint=spell_remedy(store))


def find_unshared(store: DirectoryStore, keys: Keys) -> Path | None:
    """Return a directory that the group of a store may not write, although it may write the store's own; or None.

    Raises OSError.
    """
    (_, root), *within = _list_directories(store, keys)
    if not is_shared(root.st_mode):
        return None
    narrow = (path for path, found in within if not is_shared(found.st_mode) or found.st_gid != root.st_gid)
    return next(narrow, None)


def spell_remedy(store: DirectoryStore) -> str:
    """Return what the owner of a store is to run, so that its group may write it."""
    root, group = shlex.quote(store.url), Path(store.url).stat().st_gid
    steps = f"chgrp -R {group} {root} && chmod -R g+rwX {root} && find {root} -type d -exec chmod g+s {{}} +"
    return f"have its owner run `{steps}`"


def _list_directories(store: DirectoryStore, keys: Keys) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield directories in which an apply, or an agent, writes, the store's own first. Links are left out."""
    fixed = ("", RESERVED, "files", "files/md5", "code", keys.root)
    project, queue = Path(store.url, keys.root), Path(store.url, keys.root, "queue")
    for path in (*(Path(store.url, key) for key in fixed), *_list_within(project), *_list_within(queue)):
        with contextlib.suppress(FileNotFoundError):
            found = path.stat() if path == Path(store.url) else path.lstat()
            if stat.S_ISDIR(found.st_mode):
                yield path, found


def _list_within(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:  # there is none, or it cannot be read: then it is told of itself
        return []
