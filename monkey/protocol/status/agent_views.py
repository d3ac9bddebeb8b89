"""What is known of sweeps and agents, as people ask for it. Made by `snapshot`; nothing here reads the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from monkey.protocol.entry_log import LogTally
from monkey.protocol.journal_index import JournalIndex
from monkey.protocol.layout import Keys
from monkey.protocol.status.job_view import JobState, JobView, add_lost, add_record, add_running, extract_host
from monkey.protocol.status.running_job import RunningJob
from monkey.protocol.sweeps.revision import Revision
from monkey.protocol.sweeps.sweep_state import SweepState
from monkey.protocol.sweeps.verdicts import Verdict, explain_cut_off, find_stop_position, judge_job
from monkey.spec.job.stop_when import StopEvidence, find_met_rule

_LEFT = (JobState.QUEUED, JobState.RUNNING, JobState.FROZEN, JobState.PAUSED, JobState.EXPIRED)


@dataclass(frozen=True)
class AgentView:
    """One agent, by its newest heartbeat."""

    #: "fleet/name/boot".
    id: str
    fleet: str
    #: The name of its machine, as the agent was given it.
    machine: str
    seq: int
    #: Its wall clock when it beat.
    at: float
    claims: int
    #: Jobs that it works on: claims without those ahead, those that have ended and are being recorded, and permits.
    jobs: int
    vitals: dict[str, Any]
    alert: str | None
    #: Heard of lately (by wall clocks: for people, not for decisions), and not gone on purpose.
    alive: bool
    #: Gone on purpose, and it said so.
    left: bool = False

    @property
    def system(self) -> dict[str, Any]:
        """How its machine does: cpu and memory in percent, gpus (None: it does not answer); {} while not known."""
        told: dict[str, Any] = self.vitals.get("system", {})
        return told

    @property
    def trouble(self) -> str:
        """What is wrong with its machine, or ""."""
        return str(self.system.get("trouble", ""))


class SweepView:
    """A sweep's newest revision and where its jobs stand."""

    def __init__(
        self,
        state: SweepState,
        index: JournalIndex,
        running: Mapping[str, RunningJob],
        others: list[SweepState],
        left: Mapping[str, RunningJob],
        *,
        over: bool = False,
    ):
        """Look at jobs through the journals' index; `left` ran when its agent was lost; `over`: `state` has expired."""
        self.state, self.over, self._left = state, over, left
        self._index, self._running, self._others = index, running, others

    @property
    def ids(self) -> Collection[str]:
        """The jobs of the newest revision, in the spec's order."""
        return self.state.revision.table.ids if self.state.revision else ()

    @property
    def active(self) -> bool:
        """May its jobs run now?"""
        return self.state.active and not self.over

    @property
    def counts(self) -> Counter[JobState]:
        """How many jobs are in each state."""
        return Counter(map(self.where, self.ids))

    @property
    def left(self) -> list[str]:
        """The jobs that are not final."""
        return [job for job in self.ids if self.where(job) in _LEFT]

    @property
    def unfinished(self) -> int:
        """How many jobs are not final."""
        return len(self.left)

    def count_ended(self, fleet: str) -> int:
        """Return how many jobs are final by an attempt of this fleet's agents, as far as that is known."""
        adopted = self.state.revision.adopted if self.state.revision else {}
        mine = (job for job in self.ids if self._index.find_agent(adopted.get(job, job)).startswith(f"{fleet}/"))
        return sum(self.where(job) not in _LEFT for job in mine)

    def where(self, job: str) -> JobState:
        """Return the state of one job, without the rest."""
        revision = self.state.revision
        job = revision.adopted.get(job, job) if revision and revision.adopted else job
        if job in self._index.succeeded:
            return JobState.SUCCEEDED
        running = self._running.get(job)
        if running:
            return JobState.FROZEN if running.frozen else JobState.RUNNING
        known = self._index.tally(job)
        judged = judge_job(job, known, self.state) if known else Verdict.OPEN
        if judged is not Verdict.OPEN:
            return JobState(judged)
        if self.state.cancelled is not None:
            return JobState.STOPPED if self.state.goal else JobState.CANCELLED
        if self.state.paused:
            return JobState.PAUSED
        return JobState.EXPIRED if self.over else JobState.QUEUED

    def met(self, job: str) -> StopEvidence | None:
        """Return what met a condition of the sweep and ended the job; None where nothing did."""
        revision = self.state.revision
        known = self._index.tally(revision.adopted.get(job, job)) if revision else None
        if revision is None or known is None:
            return None
        k = find_stop_position(known, revision.settings.stop_when, self.state.retries.get(job, 0))
        return known.stopped.get(k)

    def tally(self, job: str) -> LogTally | None:
        """Return what the journals say that the job's log amounts to; None where they say nothing."""
        revision = self.state.revision
        return self._index.tally(revision.adopted.get(job, job) if revision else job)

    def with_revision(self, revision: Revision) -> SweepView:
        """Return the same of an earlier revision: its jobs, as they stand now."""
        state = replace(self.state, revision=revision)
        return SweepView(state, self._index, self._running, self._others, self._left, over=self.over)

    def locate_output(self, keys: Keys, job: JobView, path: str) -> str:
        """Return the key of an output: that of the attempt which left it."""
        revision = self.state.revision
        source = revision.adopted.get(job.job, job.job) if revision else job.job
        return f"{keys.out(source, job.outputs_at.get(path, job.attempt))}outputs/{path}"

    def find_host(self, job: str) -> str:
        """Return the machine of the job's newest attempt; "" while that is not known."""
        revision = self.state.revision
        told = revision.adopted.get(job, job) if revision else job
        running = self._running.get(told) or self._left.get(told)
        return extract_host(running.agent if running else self._index.find_agent(told))

    def _met_goal(self, met: StopEvidence | None) -> bool:
        revision = self.state.revision
        rule = find_met_rule(revision.settings.stop_when, met) if revision and met else None
        return bool(revision and rule and rule.is_goal(revision.settings.metric, revision.settings.maximize))

    @property
    def left_out(self) -> int:
        """How many jobs did not end because the sweep reached its goal before."""
        if not self.state.goal:
            return 0
        return sum(self.where(job) is JobState.STOPPED and self.met(job) is None for job in self.ids)

    @property
    def jobs(self) -> Mapping[str, JobView]:
        """All jobs, viewed one by one as they are asked for."""
        return _Jobs(self)

    @property
    def nonfinite(self) -> Counter[str]:
        """Metric to the number of jobs that logged NaN or an infinity of it, in their newest attempt."""
        adopted = self.state.revision.adopted if self.state.revision else {}
        found: Counter[str] = Counter()
        for job in self.ids:
            told = adopted.get(job, job) if adopted else job
            running, record = self._running.get(told) or self._left.get(told), self._index.record(told)
            metrics = running.metrics if running else None
            if metrics is None:
                metrics = record.extra.get("metrics", {}) if record else {}
            found.update([name for name, summary in metrics.items() if summary.get("nonfinite")])
        return found

    def view(self, job: str) -> JobView:
        """Return all that is known of one job."""
        revision = self.state.revision
        told = revision.adopted.get(job, job) if revision else job
        record, running = self._index.record(told), self._running.get(told)
        view = JobView(job, self.where(job))
        if self._others:
            view.shared = tuple(s.name for s in self._others if s.wants(job))
        tally = self._index.tally(told) if told not in self._index.succeeded else None
        if tally:
            view.failures = len(tally.failed_at)
        if record:
            add_record(view, record)
        if view.state is JobState.FAILED and tally and record and record.k in tally.cut_at:
            view.reason = explain_cut_off(view.reason or "")
        if running:
            add_running(view, running)
        elif lost := self._left.get(told):
            add_lost(view, lost)
        elif view.state is JobState.STOPPED and record and tally:
            # Of the attempt that the rest is about: another sweep may have had the job tried again since.
            view.goal = self._met_goal(tally.stopped.get(record.k))
        return view


class _Jobs(Mapping[str, JobView]):
    def __init__(self, sweep: SweepView) -> None:
        self._sweep = sweep

    def __getitem__(self, job: str) -> JobView:
        revision = self._sweep.state.revision
        if revision is None or job not in revision.rows:
            raise KeyError(job)
        return self._sweep.view(job)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sweep.ids)

    def __len__(self) -> int:
        return len(self._sweep.ids)
