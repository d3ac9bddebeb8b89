"""Whether people may write a store in a directory that they share: looked at before anything is uploaded."""

from __future__ import annotations

import os
import shlex
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
    for directory in _list_directories(store, keys):
        if not os.access(directory, os.W_OK | os.X_OK):
            raise StoreForbidden(f"{directory}, of the store, cannot be written by this user", hint=spell_remedy(store))


def find_unshared(store: DirectoryStore, keys: Keys) -> Path | None:
    """Return a directory that the group of a store may not write, although it may write the store's own; or None.

    Raises OSError.
    """
    if not is_shared(Path(store.url).stat().st_mode):
        return None
    return next((path for path in _list_directories(store, keys) if not is_shared(path.stat().st_mode)), None)


def spell_remedy(store: DirectoryStore) -> str:
    """Return what the owner of a store is to run, so that its group may write it."""
    root = shlex.quote(store.url)
    return f"have its owner run `chmod -R g+rwX {root} && find {root} -type d -exec chmod g+s {{}} +`"


def _list_directories(store: DirectoryStore, keys: Keys) -> Iterator[Path]:
    """Yield directories in which an apply, or an agent, writes."""
    for key in ("", RESERVED, "files", "code", keys.root, keys.sweeps, keys.jobs, keys.agents):
        path = Path(store.url, key)
        if path.is_dir():
            yield path
