"""Where Pulumi's state lies: a prefix of the project's own store, seen as the bucket that Pulumi wants."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from monkey.errors import KeyMissing, StoreRefused
from monkey.store.store_port import Store

#: Pulumi's own directories in its state.
ROOT = ".pulumi/"
LOCKS, HISTORY, BACKUPS, STACKS = (f"{ROOT}{name}/" for name in ("locks", "history", "backups", "stacks"))
#: How many updates' history and backups are kept.
_KEPT = 5
#: In the names of both: STACK-NANOSECONDS.history.json, STACK-NANOSECONDS.checkpoint.json, STACK.NANOSECONDS.json.
_WHEN = re.compile(r"[.-](\d{10,})\.[^/]*\Z")


class StateBucket:
    """One stack's state. What is not to reach the store, or may not, stays in memory.

    Pulumi's own locks never reach it: a log of ours locks the state, and knows when a holder is dead.
    """

    def __init__(self, store: Store, prefix: str, *, dry: bool, allowed: Callable[[], bool] = lambda: True) -> None:
        """Read from `store` below `prefix`. `dry`: write nothing there; else only while it is `allowed`."""
        self._store, self._prefix = store, prefix
        self._dry, self._allowed = dry, allowed
        #: None for what was deleted here and is still in the store.
        self._over: dict[str, bytes | None] = {}

    @property
    def prefix(self) -> str:
        """Where all of it is in the store."""
        return self._prefix

    async def get(self, key: str) -> bytes:
        """Return an object; raises KeyMissing."""
        if key in self._over:
            data = self._over[key]
            if data is None:
                raise KeyMissing(key)
            return data
        return await self._store.get(self._prefix + key)

    async def put(self, key: str, data: bytes) -> None:
        """Write an object; the state itself durably. Raises StoreRefused where we no longer hold the lock."""
        if self._apart(key):
            self._over[key] = data
            return
        self._check()
        if not (key.startswith(STACKS) and key.endswith(".json")):
            await self._store.put(self._prefix + key, data)
            return
        with tempfile.TemporaryDirectory(prefix="monkey-state-") as aside:
            path = Path(aside, "state")
            await asyncio.to_thread(path.write_bytes, data)
            await self._store.put_file(self._prefix + key, path)

    async def delete(self, key: str) -> None:
        """Remove an object, if it is there."""
        if self._apart(key):
            self._over[key] = None
            return
        self._check()
        await self._store.delete(self._prefix + key)

    async def list(self, prefix: str) -> dict[str, int]:
        """Return keys with their sizes, sorted."""
        found = {
            item.key.removeprefix(self._prefix): item.size for item in await self._store.list(self._prefix + prefix)
        }
        for key, data in self._over.items():
            if key.startswith(prefix) and data is not None:
                found[key] = len(data)
            elif data is None:
                found.pop(key, None)
        return dict(sorted(found.items()))

    async def prune(self) -> None:
        """Keep of history and backups the newest few: each update adds three objects for ever."""
        for root in (HISTORY, BACKUPS):
            updates: dict[int, list[str]] = {}
            for key in await self.list(root):
                if found := _WHEN.search(key):
                    updates.setdefault(int(found[1]), []).append(key)
            for when in sorted(updates)[:-_KEPT]:
                for key in updates[when]:
                    await self.delete(key)

    async def clear(self) -> None:
        """Remove everything."""
        for key in await self.list(""):
            await self.delete(key)

    def _apart(self, key: str) -> bool:
        return self._dry or key.startswith(LOCKS)

    def _check(self) -> None:
        if not self._allowed():
            raise StoreRefused("the lock of the machines' state was lost", hint="apply again")
