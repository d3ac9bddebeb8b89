"""Reading shipments: what running or killed agents had of their jobs' logs and metrics."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from monkey.errors import CorruptObject, KeyMissing
from monkey.protocol.heartbeat import decode_beat
from monkey.protocol.layout import Keys, parse_number
from monkey.protocol.record.shipment import METRICS, Piece, decode_segment, unpack_pieces
from monkey.store.store_port import Store


class ShipmentReader:
    """The reader of one agent's shipment, which reads each segment once."""

    def __init__(self, store: Store, keys: Keys, agent: str) -> None:
        """Read the shipment of `agent` ("fleet/name/boot")."""
        self._store, self._keys, self._agent = store, keys, agent
        #: The last segment that was read, or skipped; None before the first look.
        self._last: int | None = None

    async def read(self, ship: Mapping[str, Any]) -> list[Piece]:
        """Return the pieces of segments that came since, then those of a heartbeat's `ship`. Raises StoreError."""
        found: list[Piece] = []
        sealed = ship.get("sealed", 0)
        for i in await self._list_new(sealed):
            key = self._keys.shipped_segment(self._agent, i)
            # One that was removed has pieces only of attempts that are over, and have files of their own.
            with contextlib.suppress(KeyMissing, CorruptObject):
                found += decode_segment(key, await self._store.get(key))
        self._last = max(sealed, self._last or 0)  # only now: if the store went away before, all are read again
        try:
            return found + unpack_pieces(ship.get("pieces", ()))
        except (ValueError, TypeError, AttributeError):
            return found

    async def _list_new(self, sealed: int) -> Iterable[int]:
        if self._last is not None:
            return range(self._last + 1, sealed + 1)
        prefix = self._keys.shipped(self._agent)
        names = [item.key.removeprefix(prefix) for item in await self._store.list(prefix)]
        numbers = set(filter(None, map(parse_number, names)))
        # A listing may lag behind the heartbeat.
        return sorted(numbers | set(range(min(numbers, default=1), sealed + 1)))

    async def read_all(self) -> list[Piece]:
        """Return all pieces of an agent that may be gone, by its last heartbeat. Raises StoreError."""
        key = self._keys.beat(self._agent)
        try:
            return await self.read(decode_beat(self._agent, key, await self._store.get(key)).ship)
        except (KeyMissing, CorruptObject):
            return await self.read({})


class GrowingFile:
    """A file that comes in pieces, some of them more than once."""

    def __init__(self, at: int = 0) -> None:
        """Expect the byte `at` next."""
        self.at = at

    def take(self, piece: Piece) -> bytes:
        """Return what is new in a piece; b"" where it does not continue the file."""
        if not piece.at <= self.at < piece.at + len(piece.data):
            return b""
        new = piece.data[self.at - piece.at :]
        self.at += len(new)
        return new


class ShippedMetrics:
    """The metrics files of attempts that left none of their own, as far as their agents shipped them."""

    def __init__(self, store: Store, keys: Keys) -> None:
        """Read nothing yet."""
        self._store, self._keys = store, keys
        self._agents: dict[str, ShipmentReader] = {}
        self._fresh: set[str] = set()
        self._lock = asyncio.Lock()
        #: Job and position of its claim to the files, each with what has come of it.
        self._files: dict[tuple[str, int], dict[str, tuple[GrowingFile, list[bytes]]]] = {}

    def refresh(self) -> None:
        """Look again at all agents when they are asked for next."""
        self._fresh.clear()

    async def read(self, agent: str, job: str, k: int) -> dict[str, bytes]:
        """Return the files of one attempt, name to bytes. Raises StoreError."""
        async with self._lock:
            if agent not in self._fresh:
                reader = self._agents.setdefault(agent, ShipmentReader(self._store, self._keys, agent))
                for piece in await reader.read_all():
                    self._take(piece)
                self._fresh.add(agent)
        return {name: b"".join(data) for name, (_, data) in self._files.get((job, k), {}).items()}

    def _take(self, piece: Piece) -> None:
        if piece.name.startswith(METRICS):
            files = self._files.setdefault(piece[:2], {})
            file, data = files.setdefault(piece.name.removeprefix(METRICS), (GrowingFile(), []))
            data.append(file.take(piece))
