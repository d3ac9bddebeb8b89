"""Machines whose time is known to end: what becomes of their jobs, looked at from the store's side."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from monkey.protocol.entries import Claim, EndEntry, JobEntry, TornEntry
from monkey.protocol.entry_log import EntryLog, tally_log
from monkey.protocol.sweeps.verdicts import is_cut_off
from monkey_agent.ports import AttemptEnd, AttemptOutcome
from tests.simulation.body import KEYS, Execution, job_id

if TYPE_CHECKING:
    from tests.simulation.life import Life
    from tests.simulation.world import World

#: Jobs that last about as long as a pilot, or longer: the first saves nothing, the other what it has done.
STUBBORN, PATIENT = job_id(1), job_id(4)
#: Seconds that an agent has to leave, after its time is over, until its machine is gone.
LEAVING = 240.0


class Pilots:
    """The pilots of one run: each has the same time."""

    def __init__(self, world: World) -> None:
        self.world = world
        #: Of its own, and in one seed of five: the other seeds stay what they were.
        own = random.Random(f"pilots {world.seed}")
        timed = world.weather.pilots and not world.weather.records and world.seed % 5 == 2
        self.whole = own.uniform(200, 600) if timed else None
        self.timeouts = {name: self.whole and own.choice([None, self.whole / 2]) for name in "ab"}
        self._work = {job: (self.whole or 0) * own.uniform(0.6, 2.5) for job in (STUBBORN, PATIENT)}
        self._done: defaultdict[str, float] = defaultdict(float)
        #: Job to the attempts that saved a checkpoint.
        self._saved: defaultdict[str, list[int]] = defaultdict(list)
        #: Job to the ends that must count: their position, and how many checkpoints there were.
        self._cuts: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self._ends: dict[str, float] = {}
        #: Claims (job, position) of pilots that had too little time left.
        self._late: set[tuple[str, int]] = set()

    def raised(self, life: Life) -> None:
        """An agent begins on a new pilot, which is gone some time after its end."""
        if self.whole is not None:
            self._ends[life.agent.identity.agent] = life.agent.identity.leave_at
            self.world.loop.call_later(self.whole + LEAVING, life.crash)

    def size(self, execution: Execution) -> None:
        """Give the jobs that last their work; the patient one saves what it has done, in every other attempt or so."""
        job = execution.attempt.job
        if (job, execution.attempt.k) in self._late:
            self.world.violations["a job began that may not end in time"] += 1
        if self.whole is not None and job in self._work:
            execution.left = max(1.0, self._work[job] - self._done[job])
            saves = job == PATIENT and random.Random(f"pilots {self.world.seed} {execution.attempt.k}").random() < 0.5
            execution.saves = execution.left - 30 if saves else None
            execution.verdict = AttemptEnd.SUCCEEDED

    def save(self, execution: Execution) -> None:
        """Write a checkpoint of an attempt."""
        job, k = execution.attempt.job, execution.attempt.k
        if job in self._work:
            self._done[job] = self._work[job] - execution.left
        self.world.state.write(KEYS.checkpoint(job, k, 1), b"{}")
        self._saved[job].append(k)

    def measure(self, execution: Execution, outcome: AttemptOutcome) -> AttemptOutcome:
        """Add what the runner knows of an attempt that was stopped."""
        if outcome.ending is not AttemptEnd.STOPPED or not execution.begun:
            return outcome
        prefix = KEYS.checkpoints(execution.attempt.job)
        paths = [item.key.removeprefix(prefix) for item in self.world.listing(prefix, "")]
        newest = max((int(path.split("/")[0]) for path in paths), default=0)
        return replace(outcome, seconds=execution.ran, checkpoint=0 if self.world.mutant.blind else newest)

    def ended(self, job: str, entry: JobEntry, log: EntryLog) -> None:
        """An end was written."""
        if isinstance(entry, EndEntry) and (job, log.head - 1) in self._late:
            self.world.counts["released for a machine with more time"] += 1
        if self.whole is None or not isinstance(entry, EndEntry) or not entry.pilot_time:
            return
        ran = max((one.ran for one in self.world.active[job] if one.attempt.k == entry.out), default=0.0)
        self.world.counts["ended with its pilot's time"] += 1
        if entry.out not in self._saved[job] and ran > 0.51 * self.whole:
            self._cuts[job].append((log.head, len(self._saved[job])))
        if entry.is_cut and ran < 0.49 * self.whole:
            self.world.violations["a job that had little time was cut off"] += 1
        tally = tally_log(log)
        if entry.is_cut and is_cut_off(tally, 0):
            self.world.counts["cut off"] += 1
            first = [k for k, checkpoint in tally.cut_at.items() if checkpoint == entry.checkpoint][-2]
            end = log.entries[first - 1]
            if isinstance(end, EndEntry) and any(k >= end.out for k in self._saved[job]):
                self.world.violations["a job that got on was given up"] += 1
        elif entry.is_cut and len(tally.cut_at) > 1:
            self.world.counts["got on between two pilots"] += 1

    def claimed(self, job: str, claim: Claim, log: EntryLog) -> None:
        """A job was claimed: may it be?"""
        if claim.continues or claim.sweep not in self.timeouts:
            return
        timeout, end = self.timeouts[claim.sweep], self._ends.get(claim.agent)
        if timeout and end and claim.at + timeout > end + 1:
            self._late.add((job, log.head))
            if log.head < 2 or not isinstance(log.entries[-2], Claim | TornEntry):
                self.world.violations["a job was claimed that may not end in time"] += 1
        state = self.world.endings.states.get(claim.sweep)  # none where the store holds what no client of ours wrote
        since = state.retries.get(job, 0) if state else 0
        cuts = [saved for k, saved in self._cuts[job] if since < k < log.head]
        if cuts.count(len(self._saved[job])) > 1:
            self.world.violations["a job that never ends in a pilot's time was run again"] += 1
