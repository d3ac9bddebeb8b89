"""The objects of a verification: each brought to a file of its own, read in pieces, and removed again."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from monkey.errors import KeyMissing
from monkey.removal import remove_file
from monkey.store.content.objects import Moved
from monkey.store.store_port import Store
from monkey.transfer.download import load_stored_file

#: Bytes that are read at once, and of a file that is small enough to be read without another thread.
_PIECE_BYTES, _SMALL_BYTES = 1 << 20, 256 * 1024
_T = TypeVar("_T")


class Digest(Protocol):
    """A hash under way; those of hashlib are such."""

    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


class ObjectDigest(NamedTuple):
    """The digest of an object's bytes, 32 or 64 hex, and how many they are."""

    digest: str
    size: int


class ObjectReader:
    """Reads objects of a store by way of files: memory stays small, however large they are."""

    def __init__(self, store: Store, directory: Path, moved: Moved) -> None:
        """Bring objects to `directory`; `moved` is called with each one's size."""
        self.store, self._directory, self._moved = store, directory, moved
        self._numbers = itertools.count()
        #: Bytes that were read.
        self.size = 0
        self._closed = False

    @asynccontextmanager
    async def bring(self, key: str) -> AsyncIterator[Path | None]:
        """Bring an object to a file, which is removed afterwards; None where it is not in the store."""
        path = self._directory / str(next(self._numbers))
        await asyncio.sleep(0)  # a directory's small objects never wait for anything: an interrupt would come last
        try:
            try:
                await load_stored_file(self.store, key, path)
            except KeyMissing:
                yield None
                return
            size = path.stat().st_size
            self.size += size
            self._moved(1, size)
            yield path
        finally:
            remove_file(path)

    async def compute_digest(self, key: str, begin: Callable[[], Digest] = hashlib.sha256) -> ObjectDigest | None:
        """Return the digest of an object; None where it is not in the store. Raises StoreError."""
        async with self.bring(key) as path:
            return None if path is None else await self.work(path, lambda: self._digest(path, begin()))

    def _digest(self, path: Path, digest: Digest) -> ObjectDigest:
        for piece in self.read_pieces(path):
            digest.update(piece)
        return ObjectDigest(digest.hexdigest(), path.stat().st_size)

    async def work(self, path: Path, work: Callable[[], _T]) -> _T:
        """Do work with a file; in another thread where that may take long."""
        return work() if _is_small(path) else await asyncio.to_thread(work)

    def read_pieces(self, path: Path) -> Iterator[bytes]:
        """Yield the bytes of a file; ends early once the reader is closed, so that an interrupt waits for no thread."""
        with path.open("rb", buffering=0) as file:
            while not self._closed and (piece := file.read(_PIECE_BYTES)):
                yield piece

    def close(self) -> None:
        """Read no further."""
        self._closed = True


def _is_small(path: Path) -> bool:
    return path.stat().st_size <= _SMALL_BYTES
