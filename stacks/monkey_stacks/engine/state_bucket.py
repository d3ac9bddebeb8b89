"""Where Pulumi's state lies: a prefix of the project's own store, seen as the bucket that Pulumi wants.

Pulumi sees what it wrote itself, and the state that was judged. It sees nothing else that is in the store. Otherwise a
forged state in another layout, or a compressed one, would be read in place of the judged one.
"""

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
#: Largest number of bytes of an object. Pulumi's client would send more in parts, which its endpoint does not join.
LARGEST = 5 << 20
#: How many updates' history and backups are kept.
_KEPT = 5
#: In the names of both: STACK-NANOSECONDS.history.json, STACK-NANOSECONDS.checkpoint.json, STACK.NANOSECONDS.json.
_WHEN = re.compile(r"[.-](\d{10,})\.[^/]*\Z")


class StateBucket:
    """One stack's state, as Pulumi sees it, and in the store. What is not to reach the store stays in memory.

    Pulumi's own locks never reach it: a log of ours locks the state, and knows when a holder is dead.
    """

    def __init__(self, store: Store, prefix: str, *, dry: bool, allowed: Callable[[], bool] = lambda: True) -> None:
        """Read from `store` below `prefix`. `dry`: write nothing there; else only while it is `allowed`."""
        self._store, self._prefix = store, prefix
        self._dry, self._allowed = dry, allowed
        self._seen: dict[str, bytes] = {}

    @property
    def prefix(self) -> str:
        """Where all of it is in the store."""
        return self._prefix

    async def load(self, key: str) -> bytes:
        """Return an object as the store has it, which Pulumi must not see before it is judged; raises KeyMissing."""
        return await self._store.get(self._prefix + key)

    async def get(self, key: str) -> bytes:
        """Return an object that Pulumi may see; raises KeyMissing."""
        if key not in self._seen:
            raise KeyMissing(key)
        return self._seen[key]

    def show(self, key: str, data: bytes) -> None:
        """Have Pulumi see an object, and leave the store as it is."""
        self._seen[key] = data

    async def put(self, key: str, data: bytes) -> None:
        """Write an object; the state itself durably. Raises StoreRefused where we no longer hold the lock."""
        if not self._apart(key):
            await self._write(key, data)
        self.show(key, data)

    async def _write(self, key: str, data: bytes) -> None:
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
        if not self._apart(key):
            self._check()
            await self._store.delete(self._prefix + key)
        self._seen.pop(key, None)

    async def list(self, prefix: str) -> dict[str, int]:
        """Return the keys that Pulumi may see with their sizes, sorted."""
        return {key: len(data) for key, data in sorted(self._seen.items()) if key.startswith(prefix)}

    async def list_stored(self, prefix: str) -> tuple[str, ...]:
        """Return the keys that the store has."""
        return tuple(item.key.removeprefix(self._prefix) for item in await self._store.list(self._prefix + prefix))

    async def prune(self) -> None:
        """Keep of history and backups the newest few: each update adds three objects for ever."""
        for root in (HISTORY, BACKUPS):
            updates: dict[int, list[str]] = {}
            for key in await self.list_stored(root):
                if found := _WHEN.search(key):
                    updates.setdefault(int(found[1]), []).append(key)
            for when in sorted(updates)[:-_KEPT]:
                for key in updates[when]:
                    await self.delete(key)

    async def clear(self) -> None:
        """Remove everything."""
        for key in await self.list_stored(""):
            await self.delete(key)

    def _apart(self, key: str) -> bool:
        return self._dry or key.startswith(LOCKS)

    def _check(self) -> None:
        if not self._allowed():
            raise StoreRefused("the lock of the machines' state was lost", hint="apply again")
