"""The watch over sweeps until nothing is left to run."""

from __future__ import annotations

import asyncio
import gc
import itertools
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from monkey.apply.watch.fleet_calls import FleetCalls
from monkey.apply.watch.stuck_sweeps import StuckSweeps
from monkey.apply.watch.sweep_progress import (
    DEAR,
    QUICKEST,
    Show,
    SweepPace,
    SweepProgress,
    WaitOutcome,
    count_unfinished,
)
from monkey.errors import StoreError, StoreMissing, StoreRefused, StoreReplaced, StoreUnavailable
from monkey.fleet.fleet_port import Fleet
from monkey.protocol.layout import Keys
from monkey.protocol.status.store_snapshot import SnapshotReader, SweepView
from monkey.protocol.wakeup import wake_agents
from monkey.store.store_port import Store

#: Seconds between looks at whether an agent lives.
FLEET_CHECK = 1.0

#: Seconds between renewals of the watcher's marker, which makes agents beat and ship logs every second.
WATCHER_BEAT = 5.0

#: Seconds for which a store that refuses to be looked at is asked again: credentials are renewed while sweeps run.
REFUSED = 30.0

#: Seconds between looks at a store that does not answer.
STORE_AWAY_POLL = 1.0


@dataclass
class SweepWatch:
    """One watch over sweeps until none of them is being worked on."""

    store: Store
    keys: Keys
    reader: SnapshotReader
    fleets: Mapping[str, Fleet]
    names: Collection[str]
    show: Show
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _paces: dict[str, SweepPace] = field(default_factory=dict)
    _checked: float = float("-inf")
    _calls: FleetCalls = field(init=False)
    #: Since when the store refuses to be looked at.
    _refused: float | None = None
    _stuck: StuckSweeps = field(default_factory=StuckSweeps)

    def __post_init__(self) -> None:
        """Call no fleet yet."""
        self._calls = FleetCalls(self.reader, self.fleets)

    async def run(self) -> list[SweepProgress]:
        """Return what became of every sweep. Raises FleetError where no agent can be kept at work, or do any of it, and
        StoreRefused, StoreReplaced.
        """
        progress: list[SweepProgress] = []
        began = self.now()
        async with announce_watcher(self.store, self.keys) as writing:
            while True:
                looked = self.now()
                try:
                    snapshot = await self.reader.read(self.names)
                    progress = [self._progress(snapshot.sweeps[name]) for name in self.names]
                    self._calls.note_agents(snapshot.agents)
                    self.show(snapshot, progress, writing.trouble)
                    if all(one.wait is not WaitOutcome.WORKING for one in progress):
                        return progress
                    self._stuck.look(snapshot, [one for one in progress if one.wait is WaitOutcome.WORKING], self.now())
                    await self._keep_going(progress)
                except StoreReplaced:
                    raise
                except StoreRefused as exc:
                    self._be_patient(exc)
                    self.show(None, progress, exc.message)
                    await self.sleep(STORE_AWAY_POLL)
                except (StoreUnavailable, StoreMissing) as exc:
                    # The agents freeze and wait for it too; giving up here would help nobody.
                    self.show(None, progress, exc.message)
                    await self.sleep(STORE_AWAY_POLL)
                else:
                    self._refused = None
                    await self.sleep(self._pause(self.now() - looked, looked - began))

    def _be_patient(self, exc: StoreRefused) -> None:
        """Wait until rights or credentials are fixed, but not for ever: agents have their own. Raises it."""
        self._refused = self.now() if self._refused is None else self._refused
        if self.now() - self._refused > REFUSED:
            hint = f"{exc.hint}; " if exc.hint else ""
            raise StoreRefused(
                f"{exc.message}. Nobody can watch from here; what was applied stays so, and agents go on",
                hint=f"{hint}`monkey status -w` watches again",
            ) from exc

    def _pause(self, cost: float, waited: float) -> float:
        """Return how long not to look: the end of a short sweep is seen at once, and looking takes a fifth at most."""
        if self.store.poll >= 1:
            return min(self.store.poll, DEAR)
        return min(self.store.poll, max(QUICKEST, waited / 40)) + 5 * cost

    def _progress(self, view: SweepView) -> SweepProgress:
        counts = view.counts
        left = count_unfinished(counts)
        pace = self._paces.setdefault(view.state.name, SweepPace())
        pace.see(self.now(), sum(counts.values()) - left)
        revision = view.state.revision
        trouble = self._calls.explain_given_up(revision.settings.providers) if revision else ""
        return SweepProgress(view, counts, pace.rate, left / pace.rate if pace.rate else None, trouble)

    async def _keep_going(self, progress: list[SweepProgress]) -> None:
        """Call fleets again whose agents left although there is work; seldom, as fleets may be far away."""
        if self.now() - self._checked >= FLEET_CHECK:
            self._checked = self.now()
            await self._calls.call_again(progress)


@dataclass
class StoreWriteCheck:
    """Whether the store takes what is written, as seen from here."""

    #: Why it does not; empty where it does.
    trouble: str = ""


@asynccontextmanager
async def announce_watcher(store: Store, keys: Keys) -> AsyncIterator[StoreWriteCheck]:
    """Let the agents know that a user watches, for as long as this is open; say whether the store can be written."""
    gc.enable()  # the command line starts without: this is where it may run for days
    key = keys.watcher(secrets.token_hex(4))

    async def renew() -> None:
        for beat in itertools.count():
            try:
                # Other bytes each time: where a version is a hash of them, the same would look like nobody.
                await store.put(key, b'{"beat":%d}' % beat)
                writing.trouble = ""
                if not beat:
                    await wake_agents(store, keys)
            except StoreError as exc:
                writing.trouble = exc.message  # agents meet the same: ends that cannot be recorded look like work
            await asyncio.sleep(WATCHER_BEAT)

    writing = StoreWriteCheck()
    task = asyncio.create_task(renew())
    try:
        yield writing
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        with suppress(StoreError):
            await store.delete(key)
