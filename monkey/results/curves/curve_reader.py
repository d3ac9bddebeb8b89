"""Reading curves from the store: of jobs that have ended, and of running ones as far as their agents shipped them.

A curve is a job's over all its attempts, by the rules of its record: see `monkey.metrics.history_summary`.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterable
from functools import partial
from pathlib import Path

from monkey.protocol.entries import EndEntry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.layout import Keys
from monkey.protocol.record.history_parts import HistoryPart, parse_parts, restore_history
from monkey.protocol.record.job_attempts import AttemptRecord, list_attempts
from monkey.protocol.record.shipment_reading import ShippedFiles
from monkey.results.curves.curve_fold import Curves, fold_curves
from monkey.store.store_port import Store

#: Jobs that are read at once.
READERS = 16


class CurveReader:
    """The reader of many jobs' curves; it reads an agent's shipment once, however many of its jobs are asked for."""

    def __init__(self, store: Store, keys: Keys, shipped: ShippedFiles | None = None) -> None:
        """Read nothing yet; `shipped`: where what agents shipped is read for others, too."""
        self._store, self._keys = store, keys
        #: What running agents shipped: it stays as it was read until it is refreshed.
        self.shipped = shipped or ShippedFiles(store, keys)
        self._folding = asyncio.Lock()

    async def read(self, job: str, metrics: Collection[str] = ()) -> Curves:
        """Return the curves of the job that has this log, by metric; no names: of all. Raises StoreError, OSError."""
        log = EntryLog(self._keys.job_log(job))
        await log.refresh(self._store)
        parts = list_parts([each for each in list_attempts(log) if each.begun])
        if not parts:
            return {}
        with tempfile.TemporaryDirectory(prefix="monkey-") as name:
            directory = Path(name).resolve()  # noqa: ASYNC240 - a link above it, as /tmp of macOS is, is no job's
            await restore_history(self._store, self._keys, job, parts, directory, self.shipped)
            last = directory / str(parts[-1].k)
            parts[-1] = parts[-1]._replace(places={path.name: path.stat().st_size for path in last.iterdir()})
            async with self._folding:  # one at a time: a long file takes its size many times over in memory
                return await asyncio.to_thread(partial(fold_curves, parts, directory, metrics))

    async def read_many(self, jobs: Iterable[str], metrics: Collection[str] = ()) -> AsyncIterator[tuple[str, Curves]]:
        """Yield each job with its curves, in their order, while the next ones are read. Raises StoreError, OSError."""
        ahead: deque[tuple[str, asyncio.Task[Curves]]] = deque()
        try:
            for job in jobs:
                ahead.append((job, asyncio.ensure_future(self.read(job, metrics))))
                if len(ahead) >= READERS:
                    yield ahead[0][0], await ahead[0][1]
                    ahead.popleft()
            while ahead:
                yield ahead[0][0], await ahead[0][1]
                ahead.popleft()
        finally:
            for _, task in ahead:
                task.cancel()
            await asyncio.gather(*(task for _, task in ahead), return_exceptions=True)


def list_parts(attempts: Iterable[AttemptRecord]) -> list[HistoryPart]:
    """Return the attempts whose values count in the newest one's curves, the first one first.

    An end names those that it continued. While there is none, each earlier attempt counts up to the first step of the
    newest. Where an attempt begins at its first step again, that is nothing; values without a step wait for the end.
    """
    parts = [HistoryPart(each.k, each.claim.agent, {}) for each in attempts]
    last = list(attempts)[-1:]
    if last and isinstance(last[0].after, EndEntry):
        try:
            return [*parse_parts(last[0].after.history), parts[-1]]
        except (ValueError, TypeError, AttributeError):  # anybody may have written it
            return parts[-1:]
    return parts
