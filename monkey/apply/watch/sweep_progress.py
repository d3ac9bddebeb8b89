"""Waiting for sweeps until a `WaitOutcome`; the waiting process keeps the fleets going meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from monkey.fleet.fleet_port import Fleet
from monkey.protocol.status.store_snapshot import JobState, StoreSnapshot, SweepView

#: Seconds over which the rate of ending jobs is taken.
RATE_WINDOW = 60.0
#: Seconds that are not looked for at the least.
QUICKEST = 0.05
#: Seconds between looks where looking costs money: it is one who watches, and for a while.
DEAR = 2.0


class WaitOutcome(StrEnum):
    """What becomes of waiting for a sweep."""

    WORKING = "working"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    #: Its time is over, and jobs are left.
    EXPIRED = "expired"
    #: All have ended, some of them by `stop_when`: as good as succeeded.
    STOPPED = "stopped"

    @property
    def well(self) -> bool:
        """Did it end as its spec asks?"""
        return self in (WaitOutcome.SUCCEEDED, WaitOutcome.STOPPED)


def judge_counts(counts: Mapping[JobState, int]) -> WaitOutcome:
    """Say whether waiting for a sweep with these jobs makes sense, and else what became of it."""
    if count_unfinished(counts):
        return WaitOutcome.WORKING
    for state in (JobState.EXPIRED, JobState.FAILED, JobState.CANCELLED, JobState.PAUSED, JobState.STOPPED):
        if counts.get(state):
            return WaitOutcome(state.value)
    return WaitOutcome.SUCCEEDED


def count_unfinished(counts: Mapping[JobState, int]) -> int:
    """Return how many of these jobs will still be worked on, as things are."""
    return sum(counts.get(state, 0) for state in (JobState.QUEUED, JobState.RUNNING, JobState.FROZEN))


class SweepPace:
    """How fast a sweep's jobs end, from what was seen of it."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._seen: deque[tuple[float, int]] = deque()

    def see(self, at: float, ended: int) -> None:
        """Note that at this time so many jobs had ended."""
        if self._seen and ended < self._seen[-1][1]:  # a retry or a new revision: start again
            self._seen.clear()
        self._seen.append((at, ended))
        while len(self._seen) > 2 and self._seen[1][0] < at - RATE_WINDOW:
            self._seen.popleft()

    @property
    def rate(self) -> float | None:
        """Jobs a second; None while none has ended under our eyes."""
        (first, before), (last, now) = self._seen[0], self._seen[-1]
        return (now - before) / (last - first) if now > before and last > first else None


@dataclass(frozen=True)
class SweepProgress:
    """How far one sweep is."""

    view: SweepView
    #: Taken once a look: the view counts again each time it is asked.
    counts: Mapping[JobState, int]
    #: Jobs that end a second, and seconds until none is left; None where not known.
    rate: float | None = None
    eta: float | None = None
    #: Why some of its fleets were given up, while others may do its work; "" for none.
    trouble: str = ""

    @property
    def name(self) -> str:
        """The sweep's name."""
        return self.view.state.name

    @property
    def wait(self) -> WaitOutcome:
        """What becomes of waiting for it."""
        return judge_counts(self.counts)

    @property
    def total(self) -> int:
        """How many jobs it has."""
        return sum(self.counts.values())

    @property
    def unfinished(self) -> int:
        """How many of them will still be worked on."""
        return count_unfinished(self.counts)


#: Is shown each look at the world: the snapshot (None: the store is away, and the message says how), and the progress.
Show = Callable[[StoreSnapshot | None, list[SweepProgress], str], None]


def find_needed_fleets(fleets: Mapping[str, Fleet], progress: Collection[SweepProgress]) -> list[Fleet]:
    """Return the fleets that unfinished sweeps are queued on."""
    names = {
        name
        for one in progress
        if one.unfinished and one.view.state.revision is not None
        for name in one.view.state.revision.settings.providers
    }
    return [fleet for name in sorted(names) if (fleet := fleets.get(name)) is not None]
