"""What jobs wrote, read from the store: the segments of an attempt's log, as they come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from monkey.apply.inspect.attempt_records import find_owner
from monkey.apply.world.world import World
from monkey.errors import KeyMissing, StoreMissing, StoreUnavailable
from monkey.protocol.layout import Keys, spell_segment_key
from monkey.protocol.status.store_snapshot import JobState, JobView, SnapshotReader
from monkey.store.store_port import Store

#: States in which a job may still write.
AT_WORK = (JobState.QUEUED, JobState.RUNNING, JobState.FROZEN)
#: Seconds between looks; agents ship every second while somebody follows.
_POLL_SECONDS = 0.3


@dataclass
class JobLog:
    """The log of one job, as far as it was read; continues with the next attempt where there is one."""

    job: str
    attempt: int = 0
    _after: str = ""

    async def more(self, store: Store, keys: Keys, attempt: int) -> AsyncIterator[bytes]:
        """Yield the segments that came since."""
        if attempt != self.attempt:
            if self.attempt:
                # What the attempt before left, first.
                async for data in self._segments(store, keys):
                    yield data
            self.attempt, self._after = attempt, ""
        async for data in self._segments(store, keys):
            yield data

    async def _segments(self, store: Store, keys: Keys) -> AsyncIterator[bytes]:
        prefix = f"{keys.out(self.job, self.attempt)}log/"
        if not self._after:
            for item in await store.list(prefix):
                with suppress(KeyMissing):  # removed since it was listed
                    yield await store.get(item.key)
                self._after = item.key
            return
        # They are numbered: to ask for the next one costs a tenth of a listing, where either costs.
        while True:
            key = spell_segment_key(prefix, int(self._after.removeprefix(prefix)) + 1)
            try:
                data = await store.get(key)
            except KeyMissing:
                return
            yield data
            self._after = key


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
        for job in view.ids if self.jobs is None else self.jobs:
            if job in self._drained:
                continue
            seen = view.view(job)
            if attempt := self.only or seen.attempt:
                log = self._logs.setdefault(job, JobLog(find_owner(view, job)))
                async for data in log.more(self.world.at, self.world.keys, attempt):
                    yield job, data
            if self._writes(seen):
                self._over = False
            else:
                self._drained.add(job)

    def _writes(self, seen: JobView) -> bool:
        """May more come?"""
        over = self.only and (seen.attempt > self.only or (seen.attempt == self.only and seen.ended is not None))
        return seen.state in AT_WORK and not over
