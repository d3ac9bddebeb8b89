"""The logs of attempts that left no file of their own yet, from the shipments of their agents: of each the end."""

from __future__ import annotations

import asyncio

from monkey.protocol.record.shipment import LOG
from monkey.protocol.record.shipment_reading import GrowingFile, ShipmentReader
from monkey.web.live_store import LiveStore

#: Bytes of the end of a log that are kept, and shown.
TAIL_BYTES = 1 << 20


class LogTail(GrowingFile):
    """A log that grows; only its end is kept."""

    def __init__(self) -> None:
        """Start without bytes."""
        super().__init__()
        self.data, self.start = bytearray(), 0

    def append(self, data: bytes) -> None:
        """Add bytes, and drop what is before the end."""
        self.data += data
        if len(self.data) > 2 * TAIL_BYTES:
            cut = len(self.data) - TAIL_BYTES
            del self.data[:cut]
            self.start += cut


class LiveLogs:
    """The logs that the agents of running jobs ship, for the agents whose jobs are looked at."""

    def __init__(self, live: LiveStore) -> None:
        """Have read nothing yet."""
        self._live = live
        self._readers: dict[str, ShipmentReader] = {}
        self._tails: dict[str, dict[tuple[str, int], LogTail]] = {}
        self._read_at: dict[str, int] = {}
        self._lock = asyncio.Lock()

    async def read(self, agent: str, job: str, k: int) -> LogTail:
        """Return the end of an attempt's log, as far as it came. Raises StoreError."""
        async with self._lock:
            if agent and self._read_at.get(agent) != self._live.version:
                await self._refresh(agent)
        return self._tails.get(agent, {}).get((job, k)) or LogTail()

    async def read_left(self, agent: str, job: str, k: int) -> LogTail:
        """Return the end of the log of an attempt that is over and left no file: its agent was lost. StoreError."""
        tail, world = LogTail(), self._live.world
        for piece in await ShipmentReader(world.at, world.keys, agent).read_all() if agent else ():
            if piece[:3] == (job, k, LOG):
                tail.append(tail.take(piece))
        return tail

    async def _refresh(self, agent: str) -> None:
        """Read what is new in an agent's shipment, and drop the logs of jobs that run no longer."""
        version, world = self._live.version, self._live.world
        at_work = (await self._live.snapshot()).at_work
        reader = self._readers.setdefault(agent, ShipmentReader(world.at, world.keys, agent))
        tails = self._tails.setdefault(agent, {})
        for piece in await reader.read(self._live.reader.ship(agent)):
            if piece.name == LOG:
                tail = tails.setdefault(piece[:2], LogTail())
                tail.append(tail.take(piece))
        for key in [key for key in tails if key[0] not in at_work]:
            del tails[key]
        self._read_at[agent] = version
