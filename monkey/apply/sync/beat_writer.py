"""The writer of a sync's heartbeat: a thread, so that an apply of hours does not look dead."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from monkey.apply.world.known_stores import KnownStores
from monkey.apply.world.project_store import open_known
from monkey.errors import MonkeyError
from monkey.protocol.layout import Keys
from monkey.protocol.status.sync_beat import SyncBeat, hash_remote


@dataclass(frozen=True)
class BeatPlace:
    """Where a beat goes: the store of which project, and the last part but one of its key."""

    store: str
    project: str
    #: Where the project remembers which stores it met.
    root: Path
    #: The sync's name among those of its branch.
    host: str


def _is_news(one: SyncBeat, other: SyncBeat) -> bool:
    return replace(one, at=0.0, looked=0.0) != replace(other, at=0.0, looked=0.0)


@dataclass
class BeatWriter:
    """The one writer of a beat: at once when something changed, and otherwise once a period."""

    say: Callable[[str], None]
    place: BeatPlace | None = None
    _beat: SyncBeat | None = None
    _written: SyncBeat | None = None
    _at: float = float("-inf")
    _trouble: str = ""
    _ending: bool = False
    _news: threading.Condition = field(default_factory=threading.Condition)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to write."""
        self._thread = threading.Thread(target=self._run, name="beat", daemon=True)
        self._thread.start()

    def show(self, beat: SyncBeat) -> None:
        """Take the beat that is to be written next."""
        with self._news:
            self._beat = beat
            self._news.notify()

    def stop(self) -> None:
        """Write the last beat, if it is news, and end."""
        with self._news:
            self._ending = True
            self._news.notify()
        if self._thread is not None:
            self._thread.join()
        else:
            self.write()

    def _run(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(self._is_due, timeout=self._wait())
                ending, due = self._ending, self._is_due()
            if due:
                self.write()
            if ending:
                return

    def _wait(self) -> float | None:
        if self._beat is None or self.place is None:
            return None
        return max(0.0, self._at + self._beat.period - time.monotonic())

    def _is_due(self) -> bool:
        if self._ending:
            return True
        if self._beat is None or self.place is None:
            return False
        overdue = time.monotonic() >= self._at + self._beat.period
        # What the store refused is tried again after a period, however much is new.
        return overdue or (not self._trouble and (self._written is None or _is_news(self._beat, self._written)))

    def write(self) -> None:
        """Write the beat now, if there is a store; what the store says against it is said once."""
        beat, place = self._beat, self.place
        if beat is None or place is None:
            return
        beat = replace(beat, at=time.time())
        trouble = ""
        try:
            asyncio.run(_put(place, beat))
        except (MonkeyError, OSError) as exc:
            trouble = str(exc)
        if trouble and trouble != self._trouble:
            self.say(f"warning: the heartbeat cannot be written: {trouble}")
        self._trouble, self._at = trouble, time.monotonic()
        self._written = beat if not trouble else self._written


async def _put(place: BeatPlace, beat: SyncBeat) -> None:
    store = await open_known(place.store, KnownStores(place.root, remember=False), begin=False)
    if store is None:  # nothing was ever applied
        return
    try:
        await store.put(Keys(place.project).sync_beat(hash_remote(beat.remote, beat.branch), place.host), beat.encode())
    finally:
        await store.close()
