"""Reading shipments: what running or killed agents had of their jobs' logs and metrics."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from monkey.errors import CorruptObject, KeyMissing
from monkey.protocol.heartbeat import decode_beat
from monkey.protocol.layout import Keys, parse_number
from monkey.protocol.record.left_out import describe_left_out
from monkey.protocol.record.shipment import LOG, METRICS, Piece, decode_segment, unpack_pieces
from monkey.store.store_port import Store

#: Bytes of the end of a log that are kept.
TAIL_BYTES = 1 << 20
#: Segments by which a listing may lag behind the heartbeat.
_LAG = 100


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
            # One that was removed has pieces only of attempts that are over, and have files of their own; or it was in
            # the middle of a log with a limit.
            with contextlib.suppress(KeyMissing, CorruptObject):
                found += decode_segment(key, await self._store.get(key))
        self._last = max(sealed, self._last or 0)  # only now: if the store went away before, all are read again
        try:
            return found + unpack_pieces(ship.get("pieces", ()))
        except (ValueError, TypeError, AttributeError):
            return found

    async def _list_new(self, sealed: int) -> Iterable[int]:
        """Return the numbers to read. Of logs with a limit, any number of segments were removed."""
        last = self._last or 0
        if self._last is not None and sealed - last <= _LAG:
            return range(last + 1, sealed + 1)
        prefix = self._keys.shipped(self._agent)
        names = [item.key.removeprefix(prefix) for item in await self._store.list(prefix)]
        numbers = set(filter(None, map(parse_number, names)))
        newest = range(max(min(numbers, default=1), sealed - _LAG), sealed + 1)
        return sorted(i for i in {*numbers, *newest} if i > last)

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

    def lacks(self, piece: Piece) -> bool:
        """Is what comes before a piece left out, as its log has a limit?"""
        return bool(piece.limit) and piece.at > self.at

    def take(self, piece: Piece) -> bytes:
        """Return what is new in a piece, after words for what is left out; b"" where it does not continue the file."""
        words = b""
        if self.lacks(piece):
            words = describe_left_out(piece.at - self.at, piece.limit)
            self.at = piece.at
        if not piece.at <= self.at < piece.at + len(piece.data):
            return b""
        new = piece.data[self.at - piece.at :]
        self.at += len(new)
        return words + new


class ShippedFile(GrowingFile):
    """A file as far as it came; of a log, only the end is kept, and nothing from before what was left out of it.

    The words for that have the place of its last bytes.
    """

    def __init__(self) -> None:
        """Have nothing yet."""
        super().__init__()
        #: What is kept, and the place of its first byte.
        self.data, self.start = bytearray(), 0

    def append(self, piece: Piece) -> None:
        """Add what is new in a piece, and drop what is before the end of a log."""
        new = self.take(piece)
        if self.start + len(self.data) + len(new) != self.at:
            self.data.clear()
            self.start = self.at - len(new)
        self.data += new
        if piece.file == LOG and len(self.data) > 2 * TAIL_BYTES:
            cut = len(self.data) - TAIL_BYTES
            del self.data[:cut]
            self.start += cut


#: The files of one attempt, by the names that pieces have.
AttemptFiles = dict[str, ShippedFile]


class ShippedFiles:
    """The logs and metrics of attempts that left no files of their own, as far as their agents shipped them.

    Each shipment is read once, however many attempts of it are asked for, and for whatever. A program that stays says
    at each `refresh` which jobs are at work: what was shipped of others is released then.
    """

    def __init__(self, store: Store, keys: Keys, find_ship: Callable[[str], Mapping[str, Any]] | None = None) -> None:
        """Read nothing yet; `find_ship`: returns what an agent's newest heartbeat has, if the caller reads those."""
        self._store, self._keys, self._find_ship = store, keys, find_ship
        self._readers: dict[str, ShipmentReader] = {}
        #: Agent to the attempts that are kept: job, and position of its claim.
        self._kept: dict[str, dict[tuple[str, int], AttemptFiles]] = {}
        self._read_at: dict[str, int] = {}
        self._refreshed = 0
        #: None: no job is known to be over.
        self._at_work: Collection[str] | None = None
        self._lock = asyncio.Lock()

    def refresh(self, at_work: Collection[str] | None = None) -> None:
        """Look again at each agent when it is asked for next; release what was shipped of jobs not in `at_work`."""
        self._refreshed += 1
        self._at_work = at_work
        for agent, attempts in list(self._kept.items()):
            released = [attempt for attempt in attempts if not self._may_grow(attempt[0])]
            for attempt in released:
                del attempts[attempt]
            if released and not attempts:  # its reader would not read again what was released
                del self._kept[agent], self._readers[agent], self._read_at[agent]

    async def read(self, agent: str, job: str, k: int) -> AttemptFiles:
        """Return the files of one attempt. Raises StoreError."""
        async with self._lock:
            if not self._may_grow(job):
                pieces = await ShipmentReader(self._store, self._keys, agent).read_all()
                return _join_files(piece for piece in pieces if piece[:2] == (job, k)).get((job, k), {})
            if self._read_at.get(agent) != self._refreshed:
                now = self._refreshed
                reader = self._readers.setdefault(agent, ShipmentReader(self._store, self._keys, agent))
                ship = self._find_ship
                pieces = await (reader.read(ship(agent)) if ship else reader.read_all())
                _join_files(filter(lambda piece: self._may_grow(piece.job), pieces), self._kept.setdefault(agent, {}))
                self._readers[agent], self._read_at[agent] = reader, now
        return self._kept[agent].get((job, k), {})

    def _may_grow(self, job: str) -> bool:
        return self._at_work is None or job in self._at_work


def _join_files(
    pieces: Iterable[Piece], files: dict[tuple[str, int], AttemptFiles] | None = None
) -> dict[tuple[str, int], AttemptFiles]:
    """Add pieces to the files of their attempts, and return these."""
    files = {} if files is None else files
    for piece in pieces:
        # One from the middle of a file that is not kept is of an attempt that was released.
        if not piece.at or piece.file in files.get(piece[:2], {}):
            files.setdefault(piece[:2], {}).setdefault(piece.file, ShippedFile()).append(piece)
    return files


def select_metrics(files: AttemptFiles) -> dict[str, bytes]:
    """Return the files of metrics of an attempt, by their own names."""
    return {name.removeprefix(METRICS): bytes(file.data) for name, file in files.items() if name.startswith(METRICS)}
