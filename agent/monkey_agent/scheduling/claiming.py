"""The pick of the next job: from a sweep's candidates, past jobs that are final or busy, to a claim."""

from __future__ import annotations

import asyncio
import itertools
import zlib
from collections.abc import Container
from typing import Any, NamedTuple

from monkey.protocol.claims import HeldClaim
from monkey.protocol.entries import Claim, ClaimEnd, EndEntry, TornEntry
from monkey.protocol.entry_log import EntryLog, LogTally, find_newest_checkpoint, has_own_checkpoint, tally_log
from monkey.protocol.journal import LOST, SAVED, JournalRecord, make_record
from monkey.protocol.record.job_attempts import list_attempts
from monkey.protocol.sweeps.verdicts import Verdict, judge_job
from monkey.spec.job.stop_when import StopEvidence
from monkey_agent.scheduling.agent_context import AgentContext
from monkey_agent.scheduling.job_candidates import JobCandidates
from monkey_agent.scheduling.job_records import sum_seconds
from monkey_agent.scheduling.sweep_queue import SweepQueue

#: Seconds before a failed job is tried again: doubles with each failure.
_BACKOFF_SECONDS = 1.0
BACKOFF_MAX = 60.0
#: Number of times in a row that a job is claimed again after another agent was faster, before it counts as busy.
ROUNDS = 3
#: The most seconds that a lost attempt is believed to have run.
MAX_LOST_SECONDS = 3e7
#: Idle agents that read the log of another's job at one look, in a large fleet: if all did, that would be N² requests.
LOG_READERS = 4
#: Such logs that one agent reads at a look: reading hundreds would take longer than the promise of a takeover allows.
MAX_LOG_READINGS = 32
#: Number of jobs that are examined before heartbeats and the like get their turn.
BREATH = 64


class LostAttempt(NamedTuple):
    """What is known of an attempt whose agent vanished."""

    #: Seconds that it ran, by the agent's own clock.
    seconds: float
    #: The metrics of the job, and the usage of the attempt, as heartbeats tell them.
    record: dict[str, Any]


class JobPicker:
    """The picker, which finds and claims jobs; it keeps what it read of their logs while they are not final."""

    def __init__(self, context: AgentContext, queue: SweepQueue) -> None:
        """Pick jobs of the queue's sweeps, and report to `queue` how they end."""
        self._store, self._keys, self._claims = context.store, context.keys, context.claims
        self._heart, self._observer, self._clock = context.heart, context.observer, context.clock
        self._queue, self._time = queue, context.time
        self._logs: dict[str, EntryLog] = {}
        self._journaled: set[tuple[str, int]] = set()
        #: Number of the look at the other agents: a busy job is examined once a look.
        self.look = 0
        #: Was another agent faster when a job was claimed last? In a large fleet the next one's log is read first then.
        self._outrun = False
        #: Share of others' jobs whose logs are read at a look, and the look for which it was computed.
        self._share, self._counted = 1.0, -1
        #: Jobs in hand here, of any sweep.
        self.in_hand: Container[str] = ()
        #: Keys of entries that could not be read.
        self.torn: set[str] = set()
        #: Job to when its supervisor lost it, and what a heartbeat would have told of it then.
        self._lost_here: dict[str, tuple[float, dict[str, Any]]] = {}

    async def find(self, candidates: JobCandidates) -> tuple[str, EntryLog] | None:
        """Return the next candidate that can be claimed, with its log; None: none before the next look.

        Raises StoreError.
        """
        for turn in itertools.count(1):
            if turn % BREATH == 0:
                await asyncio.sleep(0)
            if candidates.hurried != self.look:
                candidates.hurry(self._find_silent_jobs(), self.look)
            job = candidates.next(self._clock.now(), self.look)
            if job is None:
                return None
            if job in self._observer.succeeded:
                self._logs.pop(job, None)
                known = self._observer.record(job) if candidates.ends_early else None
                if known and "met" in known.extra:
                    self._queue.job_met(candidates, job, {known.k: StopEvidence.from_json(known.extra["met"])})
                continue
            candidates.busy(job, self.look)
            if job not in self.in_hand:
                log = await self._open(candidates, job)
                if log:
                    return job, log
        raise AssertionError("unreachable")

    def _find_silent_jobs(self) -> list[str]:
        """Return the jobs of agents that were silent for a whole lease; each agent has them in an order of its own.

        They are known from the jobs' logs that were read, and from the agents' last heartbeats.
        """
        silent = self._observer.find_silent()
        jobs = {job for job, log in self._logs.items() if isinstance(log.tail, Claim) and log.tail.agent in silent}
        for beat in (self._observer.beats[agent] for agent in silent & self._observer.beats.keys()):
            held = {base.removeprefix(self._keys.jobs).removesuffix("/") for base, _ in beat.held}
            jobs |= held - self._logs.keys()
        return sorted(jobs, key=self._rank)

    def _rank(self, job: str) -> int:
        return zlib.crc32(f"{self._observer.me} {job}".encode())

    async def _open(self, candidates: JobCandidates, job: str) -> EntryLog | None:
        """Return the job's log if a claim may be appended to it, else None. Raises StoreError."""
        log = self._logs.setdefault(job, EntryLog(self._keys.job_log(job)))
        if self._is_left_to_others(job, log):
            return None
        claimed = log.head or job in candidates.early or self._observer.tally(job)
        if claimed or (self._outrun and self._observer.crowded):
            await log.refresh(self._store)
        return None if self.settle(candidates, job, log) or not self._claims.free(log) else log

    def _is_left_to_others(self, job: str, log: EntryLog) -> bool:
        """Is the log of a job that a living agent has read by others at this look? Each look, it is others' turn.

        What its agent gives back is known from that agent's heartbeat, too; and that it is silent, from the roster.
        """
        if not self._observer.crowded or not isinstance(log.tail, Claim) or self._claims.free(log):
            return False
        turn = zlib.crc32(f"{self._observer.me} {job} {self.look}".encode()) / 2**32
        return turn >= self._compute_share()

    def _compute_share(self) -> float:
        """Return the share of others' jobs whose logs are read at this look, by the logs that are known."""
        if self._counted != self.look:
            tails = [log.tail for log in self._logs.values()]
            self._counted = self.look
            owners = [tail.agent for tail in tails if isinstance(tail, Claim)]
            idle = max(1, self._observer.living + 1 - len(set(owners)))
            self._share = min(LOG_READERS / idle, MAX_LOG_READINGS / len(owners))
        return self._share

    async def release_abandoned(self, candidates: JobCandidates) -> bool:
        """Release the sweep's jobs met whose agents are gone, if this machine has too little time for them.

        To be sure takes a whole lease, and no machine may have the time for that and for the job. The next one need
        not watch. Returns whether the agents of others may be gone. Raises StoreError.
        """
        fits = self._time.fits(candidates.revision.settings.timeout)
        if fits and not self._time.is_half_over:
            return False
        met = {
            job: log
            for job, log in self._logs.items()
            if candidates.state.wants(job) and job not in self.in_hand and (not fits or self._is_for_more_time(log))
        }
        for job in sorted((job for job, log in met.items() if self._claims.is_abandoned(log)), key=self._rank):
            log = met[job]
            await log.refresh(self._store)
            if self._claims.is_abandoned(log) and (held := await self._take(candidates, job, log)):
                self._mourn(job, log, held.k, candidates)
                await self._claims.release(held, "its agent is gone, and this machine has too little time for it")
            self.settle(candidates, job, log)
        return bool([log for log in met.values() if self._claims.is_suspect(log)])  # all are asked

    async def claim(self, candidates: JobCandidates, job: str, log: EntryLog) -> HeldClaim | None:
        """Claim a job that was found; return None where another agent was faster, or the store does not answer."""
        for _ in range(ROUNDS):
            head = log.head
            held = await self._take(candidates, job, log, to_run=True)
            self._outrun = held is None and log.head > head
            if held:
                self._mourn(job, log, held.k, candidates)
                return held
            if log.head == head:
                return None  # the store does not answer, or we lost the right to work
            await log.refresh(self._store)
            if self.settle(candidates, job, log) or not self._claims.free(log):
                return None
        return None

    def settle(self, candidates: JobCandidates, job: str, log: EntryLog) -> bool:
        """Note the job's state by its log; return whether it cannot be claimed now (final, or it must wait)."""
        self._index(job, log)
        counts = tally_log(log)
        judged = judge_job(job, counts, candidates.state)
        if judged is not Verdict.OPEN:
            candidates.drop(job)
            self._logs.pop(job, None)
            self._final(candidates, job, judged, counts)
            return True
        if log.head == 0:
            return False
        if self._is_for_more_time(log):
            return True
        due = self._due(candidates, job, log, counts.failed_at)
        if due > self._clock.now():
            candidates.wait(job, due)
            return True
        return False

    def _is_for_more_time(self, log: EntryLog) -> bool:
        """Did the job end with a machine's time before? It is for one that has more of it than this one has left."""
        return self._time.is_half_over and any(
            isinstance(entry, EndEntry) and entry.pilot_time for entry in log.entries
        )

    def _final(self, candidates: JobCandidates, job: str, judged: Verdict, counts: LogTally) -> None:
        """Note the verdict on a job that will not run again."""
        if judged is Verdict.FAILED:
            k = counts.last_at
            candidates.finals[job] = str(judged), k
            self._queue.job_failed(candidates, job, k)
            return
        if judged is Verdict.STOPPED:
            candidates.finals[job] = str(judged), max(counts.stopped)
        if candidates.ends_early:
            self._queue.job_met(candidates, job, counts.stopped)

    def _due(self, candidates: JobCandidates, job: str, log: EntryLog, failed_at: list[int]) -> float:
        """Return when the job may be tried again, on this agent's clock, counted from when it saw the job fail."""
        tail = log.tail
        if not isinstance(tail, EndEntry) or tail.outcome is ClaimEnd.SUCCEEDED:
            return 0.0
        failures = sum(k > candidates.state.retries.get(job, 0) for k in failed_at)
        ours = tail.agent == self._observer.me
        if tail.outcome is ClaimEnd.FAILED and failures:
            delay = min(_BACKOFF_SECONDS * 2.0 ** (failures - 1), BACKOFF_MAX)
        else:
            delay = _BACKOFF_SECONDS if ours and tail.outcome is ClaimEnd.RELEASED else 0.0
        return candidates.due.setdefault((job, log.head), self._clock.now() + delay)

    def _index(self, job: str, log: EntryLog) -> None:
        """Journal an end that no agent's journal has, as its own agent may be gone for good."""
        tail = log.tail
        if isinstance(tail, TornEntry):
            self.torn.add(tail.key)
        if not isinstance(tail, EndEntry) or (job, log.head) in self._journaled:
            return
        known = self._observer.record(job)
        if known is None or known.k < log.head:
            self.journal(make_record(job, log.head, tail, self._observer.me))

    async def _take(
        self, candidates: JobCandidates, job: str, log: EntryLog, *, to_run: bool = False
    ) -> HeldClaim | None:
        checkpoint = await self._checkpoint(job, log.tail)
        if to_run and not self._time.fits(candidates.revision.settings.timeout):
            return None  # reading the log took its time
        lost, user = self._lost(job, log.tail).seconds, candidates.revision.author
        return await self._claims.take(log, candidates.state.name, checkpoint, lost, user)

    def _lost(self, job: str, tail: object) -> LostAttempt:
        """Return what the last heartbeat of a claim's agent says of the job, if this is a takeover."""
        beat = self._observer.beats.get(tail.agent) if isinstance(tail, Claim) else None
        known = {one["job"]: (beat.at, one) for one in beat.vitals.get("running", ())} if beat else {}
        if isinstance(tail, Claim) and tail.agent == self._observer.me:
            known = self._lost_here
        at, told = known.get(job, (0.0, {}))
        seconds = round(min(max(0.0, at - told["began"]), MAX_LOST_SECONDS), 3) if told.get("began") else 0.0
        return LostAttempt(seconds, {name: told[name] for name in ("metrics", "usage") if told.get(name)})

    def note_lost(self, vitals: dict[str, Any]) -> None:
        """Keep what is known of an attempt that its supervisor lost: heartbeats no longer tell of it."""
        self._lost_here[vitals["job"]] = (self._clock.wall(), vitals)

    async def _checkpoint(self, job: str, tail: object) -> int:
        """Return the newest attempt with a checkpoint if this is a takeover; 0 for none, or no takeover."""
        if not isinstance(tail, Claim | TornEntry):
            return 0
        return await find_newest_checkpoint(self._store, self._keys.checkpoints(job))

    def _mourn(self, job: str, log: EntryLog, k: int, candidates: JobCandidates) -> None:
        """Journal that the claim before the one at `k` was lost with its agent."""
        before = log.entries[k - 2] if k > 1 else None
        if isinstance(before, Claim | TornEntry):
            what, lost = SAVED if has_own_checkpoint(log, k) else LOST, self._lost(job, before)
            attempts = list_attempts(log)[:-1]  # of torn bytes, none is known
            told = {"before": sum_seconds(attempts[:-1]), "number": attempts[-1].number if attempts else 0}
            extra = {"agent": before.agent, **{name: value for name, value in told.items() if value}, **lost.record}
            sweep, now = candidates.state.name, self._clock.wall()
            self.journal(JournalRecord(job, k - 1, what, sweep, lost.seconds, now, extra))
            self._lost_here.pop(job, None)

    def journal(self, record: JournalRecord) -> None:
        """Add a record to this agent's journal, and to its own index."""
        self._journaled.add((record.job, record.k))
        self._heart.journal.record(record)
        self._observer.note(record)
