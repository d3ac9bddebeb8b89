"""The store in memory: for tests, the simulator and a first look."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from monkey.atomic_write import write_atomically
from monkey.errors import KeyMissing
from monkey.store.content.objects import Moved, SourceFile
from monkey.store.keys import check_key, check_prefix
from monkey.store.object_limits import check_size, refuse_large
from monkey.store.store_port import ListedObject, Store
from monkey.store.upload_each import put_each


class MemoryState:
    """The bytes that several clients share. Every write gets a number: the version of a listing."""

    def __init__(self) -> None:
        """Begin empty."""
        self.objects: dict[str, tuple[bytes, int]] = {}
        self.keys: list[str] = []
        self.writes = 0

    def write(self, key: str, data: bytes) -> None:
        """Put `data` under `key`."""
        if key not in self.objects:
            insort(self.keys, key)
        self.writes += 1
        self.objects[key] = (bytes(data), self.writes)

    def remove(self, key: str) -> None:
        """Remove `key` if it is there."""
        if self.objects.pop(key, None) is not None:
            del self.keys[bisect_left(self.keys, key)]


class MemoryStore(Store):
    """A client of a MemoryState; clients that were given the same state meet in it."""

    poll = 0.25

    def __init__(self, state: MemoryState | None = None, url: str = "memory://") -> None:
        """Meet others in `state`, or begin a state of its own."""
        self.url = url
        self.state = MemoryState() if state is None else state

    async def create(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        """See `Store.create`."""
        refuse_large(key, data)
        if check_key(key) in self.state.objects:
            return False
        self.state.write(key, data)
        return True

    async def put(self, key: str, data: bytes) -> None:
        """See `Store.put`."""
        refuse_large(key, data)
        self.state.write(check_key(key), data)

    async def get(self, key: str) -> bytes:
        """See `Store.get`."""
        data = self._find(key)
        check_size(key, len(data))
        return data

    def _find(self, key: str) -> bytes:
        try:
            return self.state.objects[check_key(key)][0]
        except KeyError:
            raise KeyMissing(key) from None

    async def list(self, prefix: str, after: str = "") -> list[ListedObject]:
        """See `Store.list`."""
        check_prefix(prefix)
        keys, objects = self.state.keys, self.state.objects
        begin = max(bisect_left(keys, prefix), bisect_right(keys, after) if after else 0)
        items = []
        for key in islice(keys, begin, None):
            if not key.startswith(prefix):
                break
            data, version = objects[key]
            items.append(ListedObject(key, len(data), str(version)))
        return items

    async def delete(self, key: str) -> None:
        """See `Store.delete`."""
        self.state.remove(check_key(key))

    async def put_file(self, key: str, path: Path) -> None:
        """See `Store.put_file`."""
        self.state.write(check_key(key), _read(path))

    async def put_contents(self, sources: Sequence[SourceFile], moved: Moved) -> Sequence[str]:
        """See `Store.put_contents`."""
        return await put_each(self, sources, moved, self.put)

    async def get_file(self, key: str, path: Path) -> None:
        """See `Store.get_file`."""
        write_atomically(path, self._find(key))

    async def close(self) -> None:
        """See `Store.close`."""


def _read(path: Path) -> bytes:
    return path.read_bytes()
