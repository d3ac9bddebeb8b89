"""The port that every store implements.

Keys are relative, '/'-separated, UTF-8 without NUL, '.', '..' or empty parts. Values are bytes. Two kinds of objects
exist: those created once (`create`) and those with one writer (`put`). Nothing here retries or reads back: that is
`monkey.store.create`, once, for all backends.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from monkey.store.content.objects import Moved, SourceFile


class ListedObject(NamedTuple):
    """One key of a listing; `version` differs whenever the bytes under the key were replaced."""

    key: str
    size: int
    version: str


class Store(Protocol):
    """A place where everyone meets. Every method may raise StoreUnavailable, StoreRefused or StoreMissing."""

    #: Where it is, as the user wrote it, made absolute.
    url: str
    #: Which store it is; `open_store` says so.
    id: str = ""
    #: Did this client begin it a moment ago, with no contents there?
    empty: bool = False
    #: Seconds between looks at the store that are cheap here (a directory: below 1; a bucket: many).
    poll: float

    async def create(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        """Write `data` under `key` if nothing is there.

        Returns True when written. False says no more than that the backend claims something is there: it may be ours
        (a retry inside the client) or nothing at all (a conflict). StoreUnavailable: the outcome is not known.
        `durable`: do not return before the entry would survive a loss of power.
        """

    async def put(self, key: str, data: bytes) -> None:
        """Write or replace `key` (not durable: for objects that are written again, as heartbeats are)."""

    async def get(self, key: str) -> bytes:
        """Return the bytes under `key`; raises KeyMissing."""

    async def list(self, prefix: str, after: str = "") -> list[ListedObject]:
        """Return everything below `prefix` (a string prefix, '' for all) whose key sorts after `after`, sorted by key.

        Nothing there: an empty list, never KeyMissing.
        """

    async def delete(self, key: str) -> None:
        """Remove `key`; a missing key is no error."""

    async def put_file(self, key: str, path: Path) -> None:
        """Write or replace `key` with the file's bytes, durably and never half; the store shares no inode with it."""

    async def put_contents(self, sources: Sequence[SourceFile], moved: Moved) -> Sequence[str]:
        """Store files under the MD5s of their bytes (`contents.object_key`), and return these, in order.

        All are durable when this returns, several travel at once, and a key never holds bytes of another MD5, even if
        a process writes the files meanwhile. Raises DatasetError where a file is not what its Source says, or cannot be
        read; what was stored before stays.
        """

    async def get_file(self, key: str, path: Path) -> None:
        """Write the bytes under `key` to `path` (aside, then renamed); raises KeyMissing."""

    async def close(self) -> None:
        """Give back what the store holds; it is not used afterwards."""
