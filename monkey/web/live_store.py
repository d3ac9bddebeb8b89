"""The store as the page sees it: one reading a second while a page is open, and none otherwise."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from monkey.apply.watch.sweep_progress import DEAR
from monkey.apply.watch.watch_loop import announce_watcher
from monkey.apply.world.lookup import find_sweep, make_not_found
from monkey.apply.world.world import World
from monkey.errors import MonkeyError
from monkey.protocol.record.shipment_reading import ShippedFiles
from monkey.protocol.status.store_snapshot import SnapshotReader, StoreSnapshot, SweepView
from monkey.web.sweep_table import SweepTable

_T = TypeVar("_T")

#: Seconds between readings while a page is open; where looking costs money, a store asks for more.
_EVERY = 1.0
#: Seconds for which a reading is good where no page is open.
_FRESH = 1.0
#: Seconds for which the readings go on after the last page was closed: a reload is no end.
_LINGER = 3.0


class LiveStore:
    """The newest snapshot with a table of each sweep, refreshed for the pages that are open."""

    def __init__(self, world: World) -> None:
        """Read nothing yet."""
        self.world = world
        self.reader: SnapshotReader = world.reader()
        #: Grows with each reading that may have brought something.
        self.version = 0
        #: Why the last reading failed; "" where it did not.
        self.trouble = ""
        self.tables: dict[str, SweepTable] = {}
        #: Logs and curves of attempts at work.
        self.shipped = ShippedFiles(world.at, world.keys, self.reader.ship)
        self._snapshot: StoreSnapshot | None = None
        #: What the newest reading brought, in short.
        self._brought: tuple[Any, ...] = ()
        self._lock = asyncio.Lock()
        self._read_at = float("-inf")
        self._changed = asyncio.Condition()
        self._pages = 0
        self._watching: asyncio.Task[None] | None = None

    async def snapshot(self) -> StoreSnapshot:
        """Return the newest snapshot; read one where no page keeps it fresh. Raises StoreError."""
        if self._snapshot is None or (not self._watching and time.monotonic() - self._read_at > _FRESH):
            await self.refresh()
        assert self._snapshot is not None
        return self._snapshot

    async def refresh(self) -> None:
        """Read the store. Raises StoreError."""
        async with self._lock:
            snapshot = await self.reader.read()
            brought = _fingerprint(snapshot)
            is_new = brought != self._brought or bool(snapshot.recorded)
            if is_new:
                try:
                    await asyncio.to_thread(self._update, snapshot)
                except BaseException:
                    # What was recorded is not told again: tables that took in half of it start from nothing.
                    self._brought = ()
                    self.tables.clear()
                    raise
            self._snapshot, self._read_at, self._brought = snapshot, time.monotonic(), brought
        if not is_new:
            return
        self.shipped.refresh(snapshot.at_work)
        async with self._changed:
            self.version += 1
            self._changed.notify_all()

    def _update(self, snapshot: StoreSnapshot) -> None:
        views = {name: view for name, view in snapshot.sweeps.items() if view.state.revision is not None}
        for name in self.tables.keys() - views.keys():
            del self.tables[name]
        for name, view in views.items():
            self.tables.setdefault(name, SweepTable()).update(view, snapshot.recorded, snapshot.at_work)

    async def find_sweep(self, name: str) -> tuple[SweepView, SweepTable]:
        """Return a sweep and its table. Raises NotFound, StoreError."""
        view = find_sweep(await self.snapshot(), name)
        return view, self.tables[name]

    async def find_job(self, sweep: str, job: str) -> SweepView:
        """Return the sweep of a job; NotFound for one that it does not have. Raises StoreError."""
        view, _ = await self.find_sweep(sweep)
        if view.state.revision is None or job not in view.state.revision.rows:
            raise make_not_found(job, [sweep], "job")
        return view

    async def compute(self, work: Callable[[], _T]) -> _T:
        """Do what reads snapshots and takes long in a thread, while no reading changes them."""
        async with self._lock:
            return await asyncio.to_thread(work)

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Keep the store fresh for one page, and agents quick, for as long as this is open."""
        self._pages += 1
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._keep_fresh())
        try:
            yield
        finally:
            self._pages -= 1

    async def _keep_fresh(self) -> None:
        alone = 0.0
        async with announce_watcher(self.world.at, self.world.keys):
            while alone < _LINGER:
                began = time.monotonic()
                try:
                    await self.refresh()
                    await self._note_trouble("")
                except MonkeyError as exc:
                    # The page says it, and what was read before stays to be looked at.
                    await self._note_trouble(exc.message)
                except Exception as exc:  # none is known; without this, the page would stand still and look live
                    await self._note_trouble(f"a bug in monkey: {exc!r:.200}")
                cost = time.monotonic() - began
                pause = max(_EVERY, min(self.world.at.poll, DEAR), 2 * cost)
                await asyncio.sleep(pause)
                alone = 0.0 if self._pages else alone + pause
            self._watching = None  # a page that is opened from here on begins another

    async def _note_trouble(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            async with self._changed:
                self._changed.notify_all()

    async def wait_for_change(self, version: int, seconds: float) -> None:
        """Return when there is another version, or trouble, or after so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._changed:
                if self.version == version:
                    await self._changed.wait()

    async def close(self) -> None:
        """End the readings."""
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching


def _fingerprint(snapshot: StoreSnapshot) -> tuple[Any, ...]:
    """Return what differs between two readings of which a page would show different things."""
    agents = tuple((agent.id, agent.seq, agent.alive) for agent in snapshot.agents)
    sweeps = tuple((name, view.state.version, view.over) for name, view in snapshot.sweeps.items())
    return agents, sweeps, tuple(snapshot.problems)
