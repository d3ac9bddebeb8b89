"""What is known of sweeps and agents, as people ask for it. Made by `snapshot`; nothing here reads the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
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

_LEFT = {JobState.QUEUED, JobState.RUNNING, JobState.FROZEN, JobState.PAUSED, JobState.EXPIRED}


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
        #: Jobs that have another's results, to that other.
        self._adopted = state.revision.adopted if state.revision else {}

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
        return Counter(self.states)

    @cached_property
    def states(self) -> list[JobState]:
        """The state of each of `ids`, as it was at the first look."""
        # There may be a million, of which most have succeeded: no function is called for these.
        succeeded, done = self._index.succeeded, JobState.SUCCEEDED
        sources = zip(self.ids, self._sources, strict=True)
        return [done if source in succeeded else self.where(job) for job, source in sources]

    @property
    def hosts(self) -> list[str]:
        """The machine of the newest attempt of each of `ids`; "" where that is not known."""
        at_work = {**self._left, **self._running}
        known = zip(self._sources, self._index.list_agents(self._sources), strict=True)
        return [extract_host(at_work[job].agent if job in at_work else agent) for job, agent in known]

    @property
    def _sources(self) -> Collection[str]:
        """The jobs that the results of `ids` are of."""
        return [self._adopted.get(job, job) for job in self.ids] if self._adopted else self.ids

    @property
    def left(self) -> list[str]:
        """The jobs that are not final."""
        return [job for job, state in zip(self.ids, self.states, strict=True) if state in _LEFT]

    @property
    def unfinished(self) -> int:
        """How many jobs are not final."""
        return len(self.left)

    def count_ended(self, fleet: str) -> int:
        """Return how many jobs are final by an attempt of this fleet's agents, as far as that is known."""
        ended = zip(self._index.list_agents(self._sources), self.states, strict=True)
        return sum(agent.startswith(f"{fleet}/") and state not in _LEFT for agent, state in ended)

    def where(self, job: str) -> JobState:
        """Return the state of one job, without the rest."""
        job = self._adopted.get(job, job)
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
        known = self.tally(job)
        if revision is None or known is None:
            return None
        k = find_stop_position(known, revision.settings.stop_when, self.state.retries.get(job, 0))
        return known.stopped.get(k)

    def tally(self, job: str) -> LogTally | None:
        """Return what the journals say that the job's log amounts to; None where they say nothing."""
        return self._index.tally(self._adopted.get(job, job))

    def with_revision(self, revision: Revision) -> SweepView:
        """Return the same of an earlier revision: its jobs, as they stand now."""
        state = replace(self.state, revision=revision)
        return SweepView(state, self._index, self._running, self._others, self._left, over=self.over)

    def locate_output(self, keys: Keys, job: JobView, path: str) -> str:
        """Return the key of an output: that of the attempt which left it."""
        source = self._adopted.get(job.job, job.job)
        return f"{keys.out(source, job.outputs_at.get(path, job.attempt))}outputs/{path}"

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
        at_work = {**self._left, **self._running}
        suspects = self._index.nonfinite | at_work.keys()
        found: Counter[str] = Counter()
        for told in filter(suspects.__contains__, self._sources):
            running, record = at_work.get(told), self._index.record(told)
            metrics = running.metrics if running else None
            if metrics is None:
                metrics = record.extra.get("metrics", {}) if record else {}
            found.update([name for name, summary in metrics.items() if summary.get("nonfinite")])
        return found

    def view(self, job: str) -> JobView:
        """Return all that is known of one job."""
        told = self._adopted.get(job, job)
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
