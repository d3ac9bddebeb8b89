"""The store in a directory that machines share: on NFS, above all.

A client's kernel remembers for up to a minute what it found missing. So this store opens the key's directories before
it calls a key missing. The client then asks the server for their attributes, and looks again into those that changed.
Without that, the end of a log was never shown, and a cancel came 54 s late.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from monkey.errors import KeyMissing
from monkey.removal import remove_empty_directory
from monkey.store.directory.answer_watch import AnswerWatch
from monkey.store.directory.store import DirectoryStore
from monkey.store.keys import check_key, check_prefix
from monkey.store.store_port import ListedObject


class NetworkStore(DirectoryStore):
    """A store in a directory on a network mount; made by `monkey.store.open.open_store`."""

    def __init__(self, root: Path, store_id: str | None, watch: AnswerWatch) -> None:
        """Expect the store `store_id` in `root`, as `DirectoryStore` does; `watch` runs until this is closed."""
        super().__init__(root, store_id)
        self._watch = watch

    async def get(self, key: str) -> bytes:
        """See `Store.get`."""
        try:
            return await super().get(key)
        except KeyMissing:
            self._place.open_ancestors(self._place.path(key))
            return await super().get(key)

    async def get_newest(self, key: str) -> bytes:
        """See `Store.get_newest`. The key's directory is changed, and so the client reads it again.

        That helps even where opening it does not: on mounts with `nocto`. No listing has directories, so none sees it.
        """
        aside = f".look-{secrets.token_hex(6)}"
        try:
            with self._place.enter(check=False) as inside:
                directory, _ = inside.reach(check_key(key))
                os.mkdir(aside, dir_fd=directory)
                remove_empty_directory(aside, directory)
        except FileNotFoundError:
            pass  # nothing is there, which `get` finds out
        except OSError as exc:
            raise self._place.translate(exc, key) from exc
        return await self.get(key)

    async def get_file(self, key: str, path: Path) -> None:
        """See `Store.get_file`."""
        try:
            await super().get_file(key, path)
        except KeyMissing:
            self._place.open_ancestors(self._place.path(key))
            await super().get_file(key, path)

    async def list(self, prefix: str, after: str = "") -> list[ListedObject]:
        """See `Store.list`. A directory that is there is opened, and so known to be as the server has it."""
        self._place.open_missing(self._place.below(check_prefix(prefix)))
        return await super().list(prefix, after)

    async def close(self) -> None:
        """See `Store.close`. Writes that the server does not answer are not waited for."""
        silent = self._watch.is_silent
        self._watch.close()
        if not silent:
            await super().close()
