"""What running jobs wrote so far, from the shipments of their agents: metrics whole, of logs the end."""

from __future__ import annotations

import asyncio

from monkey.protocol.record.shipment import LOG, METRICS
from monkey.protocol.record.shipment_reading import GrowingFile, ShipmentReader
from monkey.web.live_store import LiveStore

#: Bytes of the end of a log that are kept, and shown.
TAIL_BYTES = 1 << 20


class TailFile:
    """A file that grows; of a log only the end is kept."""

    def __init__(self, limit: int | None) -> None:
        """Start without bytes."""
        self.data, self.start = bytearray(), 0
        self._limit, self._growing = limit, GrowingFile()

    @property
    def growing(self) -> GrowingFile:
        """Where the file is continued."""
        return self._growing

    def append(self, data: bytes) -> None:
        """Add bytes, and drop what is before the limit."""
        self.data += data
        if self._limit is not None and len(self.data) > 2 * self._limit:
            cut = len(self.data) - self._limit
            del self.data[:cut]
            self.start += cut


class LiveShipments:
    """The shipments of the agents whose jobs are looked at."""

    def __init__(self, live: LiveStore) -> None:
        """Have read nothing yet."""
        self._live = live
        self._readers: dict[str, ShipmentReader] = {}
        self._files: dict[str, dict[tuple[str, int, str], TailFile]] = {}
        self._read_at: dict[str, int] = {}
        self._lock = asyncio.Lock()

    async def read_metrics(self, agent: str, job: str, k: int) -> dict[str, bytes]:
        """Return the metrics files of a running attempt, as far as they came. Raises StoreError."""
        files = await self._refresh(agent)
        mine = {name: one for (owner, at, name), one in files.items() if (owner, at) == (job, k)}
        return {name: bytes(one.data) for name, one in mine.items() if name.startswith(METRICS)}

    async def read_log(self, agent: str, job: str, k: int) -> TailFile:
        """Return the end of a running attempt's log, as far as it came. Raises StoreError."""
        files = await self._refresh(agent)
        return files.get((job, k, LOG)) or TailFile(TAIL_BYTES)

    async def _refresh(self, agent: str) -> dict[tuple[str, int, str], TailFile]:
        """Read what is new in an agent's shipment, once a version of the store."""
        async with self._lock:
            files = self._files.setdefault(agent, {})
            if not agent or self._read_at.get(agent) == self._live.version:
                return files
            version, at_work = self._live.version, set((await self._live.snapshot()).at_work)
            reader = self._readers.get(agent)
            if reader is None:
                world = self._live.world
                reader = self._readers[agent] = ShipmentReader(world.at, world.keys, agent)
            for piece in await reader.read(self._live.reader.ship(agent)):
                one = files.get(piece[:3])
                if one is None:
                    one = files[piece[:3]] = TailFile(TAIL_BYTES if piece.name == LOG else None)
                one.append(one.growing.take(piece))
            for key in [key for key in files if key[0] not in at_work]:
                del files[key]  # what has ended has files of its own
            self._read_at[agent] = version
            return files
