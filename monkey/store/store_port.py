"""The store's port, which every backend implements.

Keys are relative, '/'-separated, UTF-8 without NUL, '.', '..' or empty parts. Values are bytes. Two kinds of objects
exist: those created once (`create`) and those with one writer (`put`). A backend does not retry or read back:
`monkey.store.create` does so for all backends.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from monkey.store.content.objects import Moved, SourceFile


class ListedObject(NamedTuple):
    """One key of a listing, with its size in bytes; `version` changes whenever the bytes are replaced."""

    key: str
    size: int
    version: str


class Store(Protocol):
    """The store, which all machines share. Every method may raise StoreUnavailable, StoreRefused or StoreMissing."""

    #: Its place as the user wrote it, made absolute.
    url: str
    #: The store's identity, set by `open_store`.
    id: str = ""
    #: The version of its layout (`monkey.store.format`), set by `open_store`.
    layout: int = 1
    #: Whether this client created it a moment ago, without contents.
    empty: bool = False
    #: Seconds between looks at the store that are cheap for this backend (a directory: below 1; a bucket: many).
    poll: float

    async def create(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        """Write `data` under `key` if nothing is there; return True when it was written.

        False means only that the backend claims that something is there. That may be our own write (after a retry
        inside the client), or nothing at all (a conflict). StoreUnavailable: the outcome is not known.
        `durable`: do not return before the entry would survive a loss of power.
        Raises StoreRefused for more bytes than `get` returns (`monkey.store.object_limits`); so does `put`.
        """

    async def put(self, key: str, data: bytes) -> None:
        """Write or replace `key`, not durably: for objects that are written again, as heartbeats are."""

    async def get(self, key: str) -> bytes:
        """Return the bytes under `key`. Raises KeyMissing.

        Raises ObjectTooLarge where there are more than `monkey.store.object_limits` allows: they never are in memory.
        """

    async def get_newest(self, key: str) -> bytes:
        """Return the bytes under `key` as the store has them now, past the caches of this machine. Raises KeyMissing.

        It may cost a write. Where nothing is cached, it is `get`.
        """
        return await self.get(key)

    async def list(self, prefix: str, after: str = "") -> list[ListedObject]:
        """Return the objects whose key begins with `prefix` ('' for all) and sorts after `after`, sorted by key.

        Where there are none, it returns an empty list, and never raises KeyMissing.
        """

    async def list_directories(self, prefix: str) -> Sequence[str]:
        """Return what keys have between `prefix`, which ends with '/', and their next '/', sorted.

        It costs no look at what lies below, where the backend can do without.
        """
        parts = (item.key.removeprefix(prefix).partition("/") for item in await self.list(prefix))
        return sorted({name for name, slash, _ in parts if slash})

    async def delete(self, key: str) -> None:
        """Remove `key`; a missing key is no error."""

    async def put_file(self, key: str, path: Path) -> None:
        """Write or replace `key` with the file's bytes, durably and never half. The store does not link to the file.

        It never opens `path` after it was cancelled (in another thread): `path` may name a descriptor of the caller's,
        which then is another file's.
        """

    async def put_contents(self, sources: Sequence[SourceFile], moved: Moved) -> Sequence[str]:
        """Store files under the MD5s of their bytes (`content.objects.spell_md5_key`); return these MD5s, in order.

        All are durable when this returns, and several are sent at once. A key never has bytes of another MD5, even if
        a process writes the files meanwhile. Raises DatasetError where a file differs from its SourceFile, or cannot be
        read; what was stored before stays.
        """

    async def get_file(self, key: str, path: Path) -> None:
        """Write the bytes under `key` to the file `path` (aside, then renamed). Raises KeyMissing."""

    async def remove_stale(self) -> None:
        """Remove what writers that died a day ago left half-written. An agent does so as it starts, and nothing else.

        Where nothing can be half-written, it does nothing.
        """
        return

    async def close(self) -> None:
        """Close the store's connections and files; it is not used afterwards."""


@runtime_checkable
class LinkSigner(Protocol):
    """A store whose objects can be read by a link alone, without credentials."""

    async def sign_link(self, key: str, seconds: float) -> str:
        """Return a link that reads the object `key` for so long. It is as secret as the object.

        Raises StoreRefused where the credentials here cannot sign, StoreError.
        """
