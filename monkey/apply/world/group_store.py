"""Whether people may write a store in a directory that they share: looked at before anything is uploaded."""

from __future__ import annotations

import contextlib
import os
import shlex
from pathlib import Path

from monkey.errors import StoreForbidden
from monkey.protocol.layout import Keys
from monkey.store.content.hash_worker import is_shared
from monkey.store.directory.store import DirectoryStore
from monkey.store.keys import RESERVED
from monkey.store.store_port import Store


def check_rights(store: Store, keys: Keys) -> None:
    """Raise StoreForbidden where this user may write in the store's own directory, and not in one within.

    Where not even the first may be written, the first write tells why: the disk may be read-only.
    """
    if not isinstance(store, DirectoryStore):
        return
    root = Path(store.url)
    if not _may_write(root):
        return
    for directory in _list_directories(root, keys):
        if not _may_write(directory):
            raise StoreForbidden(f"{directory}, of the store, cannot be written by this user", hint=spell_remedy(store))


def find_unshared(store: DirectoryStore, keys: Keys) -> Path | None:
    """Return a directory that the group of a store may not write, although it may write the store's own; or None.

    Raises OSError where the store is away.
    """
    root = Path(store.url)
    own = root.stat()
    if not is_shared(own.st_mode):
        return None
    for directory in _list_directories(root, keys):
        with contextlib.suppress(FileNotFoundError):
            found = directory.lstat()
            if not is_shared(found.st_mode) or found.st_gid != own.st_gid:
                return directory
    return None


def spell_remedy(store: DirectoryStore) -> str:
    """Return what the owner of a store is to run, so that its group may write it."""
    root = shlex.quote(store.url)
    group = Path(store.url).stat().st_gid
    steps = f"chgrp -R {group} {root} && chmod -R g+rwX {root} && find {root} -type d -exec chmod g+s {{}} +"
    return f"have its owner run `{steps}`"


def _may_write(directory: Path) -> bool:
    return os.access(directory, os.W_OK | os.X_OK)


def _list_directories(root: Path, keys: Keys) -> list[Path]:
    """Return the directories within in which an apply, or an agent, writes. Links are none."""
    project = root / keys.root
    known = [root / RESERVED, root / "files", root / "files/md5", root / "code", project]
    known += _list_entries(project)
    known += _list_entries(project / "queue")
    return [path for path in known if path.is_dir() and not path.is_symlink()]


def _list_entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:  # there is none, or it cannot be read: then it is told of itself
        return []
