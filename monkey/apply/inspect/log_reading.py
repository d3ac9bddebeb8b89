"""What jobs wrote, read from the store: the segments of an attempt's log, as they come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from monkey.apply.inspect.attempt_records import find_owner
from monkey.apply.world.world import World
from monkey.errors import KeyMissing, StoreMissing, StoreUnavailable
from monkey.protocol.entries import Claim, decode_entry
from monkey.protocol.layout import Keys, spell_number, spell_segment_key
from monkey.protocol.record.end_files_reading import read_end_files
from monkey.protocol.record.packed_segments import LogSegment, read_log_segment
from monkey.protocol.record.shipment import LOG, Piece
from monkey.protocol.record.shipment_reading import GrowingFile, ShipmentReader
from monkey.protocol.status.store_snapshot import JobState, JobView, SnapshotReader
from monkey.store.object_limits import read_entry
from monkey.store.store_port import Store

#: States in which a job may still write.
AT_WORK = (JobState.QUEUED, JobState.RUNNING, JobState.FROZEN)
#: Seconds between looks; agents ship every second while somebody follows.
_POLL_SECONDS = 0.3


@dataclass
class JobLog:
    """The log of one job, as far as it was read; continues with the next attempt where there is one.

    While an attempt runs, its log is among the pieces that its agent ships. Once it is over, its log is a file, or in
    its end.
    """

    job: str
    attempt: int = 0
    #: The agent that ran the attempt; "" while that is not known.
    agent: str = ""
    #: What was read of the attempt's log: of the pieces, and of the file.
    _live: GrowingFile = field(default_factory=GrowingFile)
    _skip: int = 0
    _after: str = ""
    _in_end: bool = False

    async def turn_to(self, store: Store, keys: Keys, attempt: int) -> AsyncIterator[bytes]:
        """Turn to another attempt; yield what was not read of the one before."""
        if attempt != self.attempt:
            if self.attempt:
                async for data in self.read_file(store, keys):
                    yield data
            self.attempt, self.agent = attempt, ""
            self._live, self._skip, self._after, self._in_end = GrowingFile(), 0, "", False

    @property
    def is_file(self) -> bool:
        """Is the log a file of its own, or in an end?"""
        return bool(self._after) or self._in_end

    def take(self, piece: Piece) -> bytes:
        """Return what is new in a piece of a running attempt's log."""
        if self.is_file or (piece.job, piece.k, piece.file) != (self.job, self.attempt, LOG):
            return b""
        return self._live.take(piece)

    async def has_more(self, store: Store, keys: Keys, piece: Piece) -> bool:
        """Has the file what comes before a piece and is in no other? Then the attempt is over. Raises StoreError."""
        return self._live.lacks(piece) and bool(await store.list(f"{keys.out(self.job, self.attempt)}log/"))

    async def read_file(self, store: Store, keys: Keys) -> AsyncIterator[bytes]:
        """Yield what came since of the log of an attempt that is over."""
        if self._in_end:
            return
        prefix = f"{keys.out(self.job, self.attempt)}log/"
        if not self._after:
            self._skip = self._live.at
            if (data := (await read_end_files(store, keys, self.job, self.attempt)).log) is not None:
                self._in_end = True
                yield self._cut(LogSegment(data))
                return
            for item in await store.list(prefix):
                with suppress(KeyMissing):  # removed since it was listed
                    yield self._cut(await read_log_segment(store, item.key))
                self._after = item.key
            return
        # They are numbered: to ask for the next one costs a tenth of a listing, where either costs.
        while True:
            key = spell_segment_key(prefix, int(self._after.removeprefix(prefix)) + 1)
            try:
                segment = await read_log_segment(store, key)
            except KeyMissing:
                return
            yield self._cut(segment)
            self._after = key

    def _cut(self, segment: LogSegment) -> bytes:
        """Return a segment without what the pieces had of it."""
        skip = self._skip if segment.at is None else max(0, self._live.at - segment.at)
        self._skip = max(0, skip - len(segment.data))
        return segment.data[skip:]


@dataclass
class LogFollower:
    """Jobs whose logs are read together until none of them writes any more."""

    world: World
    sweep: str
    #: None: all of the sweep's.
    jobs: Sequence[str] | None
    sleep: Callable[[float], Awaitable[None]]
    #: Position of the claim of the one attempt that is read; 0: of each job the newest, and those that come.
    only: int = 0
    _logs: dict[str, JobLog] = field(default_factory=dict)
    _shipments: dict[str, ShipmentReader] = field(default_factory=dict)
    _drained: set[str] = field(default_factory=set)
    _over: bool = False

    async def chunks(self, *, follow: bool) -> AsyncIterator[tuple[str, bytes]]:
        """Yield (job, bytes) as they come; `follow`: continue until every job has ended."""
        reader = self.world.reader()
        while True:
            try:
                async for chunk in self._look(reader):
                    yield chunk
                if not follow or self._over:
                    return
            except (StoreUnavailable, StoreMissing):
                if not follow:
                    raise
            await self.sleep(_POLL_SECONDS)

    async def _look(self, reader: SnapshotReader) -> AsyncIterator[tuple[str, bytes]]:
        """Read once. A job's state is taken before its log: a log read after the end is whole."""
        view = (await reader.read([self.sweep])).sweeps[self.sweep]
        self._over = True
        live: dict[str, list[tuple[str, JobLog]]] = {}
        for job in view.ids if self.jobs is None else self.jobs:
            if job in self._drained:
                continue
            seen = view.view(job)
            log = self._logs.setdefault(job, JobLog(find_owner(view, job)))
            async for data in self._read_files(log, seen):
                yield job, data
            if log.attempt and not log.is_file:
                live.setdefault(log.agent, []).append((job, log))
            if self._writes(seen):
                self._over = False
            else:
                self._drained.add(job)
        for agent, logs in live.items():
            async for chunk in self._read_pieces(reader, agent, logs):
                yield chunk

    async def _read_files(self, log: JobLog, seen: JobView) -> AsyncIterator[bytes]:
        """Yield what files have of a job's log; find out whose pieces have it, if none does."""
        attempt = self.only or max(seen.attempt, log.attempt)  # an attempt that has just ended may be in no view
        async for data in log.turn_to(self.world.at, self.world.keys, attempt):
            yield data
        if seen.state in (JobState.RUNNING, JobState.FROZEN) and seen.attempt == attempt:
            log.agent = seen.agent or ""
        elif attempt:
            async for data in log.read_file(self.world.at, self.world.keys):
                yield data
            if not log.is_file and not log.agent:
                log.agent = await self._find_agent(log)

    async def _find_agent(self, log: JobLog) -> str:
        """Return the agent that claimed an attempt which left no file: it was killed. "" where that is not known."""
        key = self.world.keys.job_log(log.job) + spell_number(log.attempt)
        with suppress(KeyMissing):
            claim = decode_entry(key, await read_entry(self.world.at, key))
            return claim.agent if isinstance(claim, Claim) else ""
        return ""

    async def _read_pieces(
        self, reader: SnapshotReader, agent: str, logs: Sequence[tuple[str, JobLog]]
    ) -> AsyncIterator[tuple[str, bytes]]:
        """Yield what the shipment of an agent has of attempts that left no file yet."""
        if not agent:
            return
        shipment = self._shipments.setdefault(agent, ShipmentReader(self.world.at, self.world.keys, agent))
        by_attempt = {(log.job, log.attempt): (job, log) for job, log in logs}
        for piece in await shipment.read(reader.ship(agent)):
            if found := by_attempt.get(piece[:2]):
                job, log = found
                if await log.has_more(self.world.at, self.world.keys, piece):
                    continue
                if data := log.take(piece):
                    yield job, data

    def _writes(self, seen: JobView) -> bool:
        """May more come?"""
        over = self.only and (seen.attempt > self.only or (seen.attempt == self.only and seen.ended is not None))
        return seen.state in AT_WORK and not over
