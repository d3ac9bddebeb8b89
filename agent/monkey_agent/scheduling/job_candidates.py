"""Candidates: the jobs of one sweep that may be left to run, in the order in which this agent looks at them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from monkey.protocol.sweeps.sweep_state import SweepState


class LeftSweep(NamedTuple):
    """Why a machine can run no job of a sweep, and the revision of which that was found."""

    why: str
    revision: int


class JobCandidates:
    """The jobs of a sweep's newest revision that are not known to be final.

    The agent first looks once at every job, in a random order, so that agents that start together do not want the same
    jobs. Then it looks again and again at those that were busy or must wait. Jobs of silent agents come first.
    """

    def __init__(self, state: SweepState, rng: random.Random) -> None:
        """Start a walk over the revision's jobs."""
        assert state.revision is not None
        self.state, self.revision = state, state.revision
        #: Whether a job may end the whole sweep by its metrics.
        self.ends_early = not state.waived and any(rule.sweep for rule in state.revision.settings.stop_when)
        self._walk = self._permuted(rng)
        self._walked = False
        #: Job to the number of the look at which it was found busy; it is looked at again after the next one.
        self._busy: dict[str, int] = {}
        #: Jobs that come before all others, and the number of the look that named them.
        self._first: dict[str, None] = {}
        self.hurried = -1
        #: Those of them that were examined before the walk came to them.
        self.early: set[str] = set()
        #: Job to when it may be tried again, on the agent's clock.
        self._waiting: dict[str, float] = {}
        #: Job that has ended without success to its verdict, and to the position in its log that has the reason.
        self.finals: dict[str, tuple[str, int]] = {}
        #: Whether a job ended in a way that ends the sweep, and the sweep's log, as known here, does not say so yet.
        self.ending = False
        #: Failed attempt (job, position) to the time from which on another may follow.
        self.due: dict[tuple[str, int], float] = {}

    def _permuted(self, rng: random.Random) -> Iterator[str]:
        ids, adopted = self.revision.table.ids, self.revision.adopted
        count = len(ids)
        if count == 0:
            return
        at, step = rng.randrange(count), rng.randrange(1, count) if count > 1 else 1
        while math.gcd(step, count) != 1:
            step += 1
        for _ in range(count):
            if ids[at] not in adopted:
                yield ids[at]
            at = (at + step) % count

    def leave_sweep(self, why: str) -> LeftSweep:
        """Return that this machine can run no job of the sweep as it is now."""
        return LeftSweep(why, self.state.revision_at)

    def next(self, now: float, look: int) -> str | None:
        """Return the next job to examine; None: none before the next look. The caller must put it back unless final."""
        while self._first:
            first = next(iter(self._first))
            del self._first[first]
            if self._busy.pop(first, None) is not None:
                return first
            if self._is_before_walk(first):
                self.early.add(first)
                return first
        if not self._walked:
            job = next((one for one in self._walk if one not in self.early), None)
            if job is not None:
                return job
            self._walked = True
        for job, due in self._waiting.items():
            if due <= now:
                del self._waiting[job]
                return job
        for job, examined in self._busy.items():
            if examined >= look:
                return None
            del self._busy[job]
            return job
        return None

    def _is_before_walk(self, job: str) -> bool:
        """May the walk still come to the job?"""
        if self._walked or job in self.early or job in self._waiting:
            return False
        return job in self.revision.rows and job not in self.revision.adopted

    def hurry(self, jobs: Iterable[str], look: int) -> None:
        """Examine these jobs before all others, in their order, unless they are final or wait; `look` names them."""
        self._first, self.hurried = dict.fromkeys(jobs), look

    def busy(self, job: str, look: int) -> None:
        """Note that another agent has the job: examine it after the next look. (Insertion order is order of looks.)"""
        self._waiting.pop(job, None)
        self._busy.pop(job, None)
        self._busy[job] = look

    def wait(self, job: str, due: float) -> None:
        """Note that the job may be tried again at `due`, on the agent's clock."""
        self._busy.pop(job, None)
        self._waiting[job] = due

    def drop(self, job: str) -> None:
        """Note that the job is final for this sweep."""
        self._busy.pop(job, None)
        self._waiting.pop(job, None)

    @property
    def done(self) -> bool:
        """Return whether every job is final."""
        return self._walked and not self._busy and not self._waiting
