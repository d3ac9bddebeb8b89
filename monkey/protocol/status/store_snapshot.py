"""Snapshots of a store's sweeps, jobs and agents, from journals and heartbeats. A reading is cheap: only changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from monkey.protocol.entries import EndEntry, TornEntry
from monkey.protocol.entry_log import EntryLog, LogTally
from monkey.protocol.heartbeat import Heartbeat
from monkey.protocol.journal import JournalBlock, make_record
from monkey.protocol.journal_index import JournalIndex
from monkey.protocol.layout import Keys, is_agent_name
from monkey.protocol.status.agent_views import AgentView, SweepView
from monkey.protocol.status.job_view import JobState, JobView
from monkey.protocol.status.running_job import RunningJob
from monkey.protocol.sweeps.queue_markers import FleetQueue, read_queue
from monkey.protocol.sweeps.sweep_log import list_sweeps, read_sweep
from monkey.protocol.sweeps.sweep_state import SweepState
from monkey.protocol.sweeps.verdicts import Verdict, judge_tally
from monkey.signing.entry_signers import EntrySigners
from monkey.spec.job.recipe import SweepSettings
from monkey.store.store_port import ListedObject, Store

#: Number of jobs of a sweep whose logs one reading reads one by one, where the journals do not add up.
REPAIRS = 2_000


#: Objects of one kind that are named, of those that cannot be read.
NAMED_OBJECTS = 20

#: Fields that heartbeats have of running jobs, beside the claim.
_TOLD = ("number", "sweep", "began", "frozen", "metrics", "usage")

#: States that one more record could change.
_DOUBTFUL = (JobState.QUEUED, JobState.FAILED, JobState.STOPPED, JobState.CANCELLED, JobState.PAUSED, JobState.EXPIRED)

__all__ = ["AgentView", "JobState", "JobView", "SnapshotReader", "StoreSnapshot", "SweepView"]


@dataclass(frozen=True)
class StoreSnapshot:
    """The state of a project's sweeps and agents, as of one reading."""

    sweeps: dict[str, SweepView]
    agents: list[AgentView]
    #: Sentences that people should know: entries that could not be read, by key, and troubles of agents.
    problems: list[str]
    #: Every job of the project that has succeeded.
    succeeded: set[str]
    #: Fleet to its queue.
    queue: dict[str, FleetQueue]
    #: Jobs that run, or ran when their agents were lost: their views change with each heartbeat.
    at_work: Collection[str] = ()
    #: Jobs that have a newer record than in the reading before.
    recorded: Collection[str] = ()
    #: Job of the whole project to what its log amounts to, for those that did not just succeed.
    tallies: Mapping[str, LogTally] = field(default_factory=dict)

    def alive(self, fleet: str) -> list[AgentView]:
        """Return the fleet's living agents: those whose heartbeat is recent."""
        return [agent for agent in self.agents if agent.fleet == fleet and agent.alive]

    def find_ended(self, sweep: str, jobs: Iterable[str], settings: SweepSettings) -> dict[str, Verdict]:
        """Return those of the jobs that have failed for good or were stopped for the sweep, if it had these settings.

        Whichever sweep ran them: agents would not run them for this one, either, before it retries them.
        """
        known = self.sweeps.get(sweep)
        retries = {} if known is None or known.state.is_foreign else known.state.retries
        # Most jobs have no tally at all, of a million maybe none.
        doubtful = (job for job in jobs if job in self.tallies and job not in self.succeeded) if self.tallies else ()
        judged = ((job, judge_tally(self.tallies[job], settings, retries.get(job, 0))) for job in doubtful)
        return {job: verdict for job, verdict in judged if verdict in (Verdict.FAILED, Verdict.STOPPED)}


class _PoliteIndex(JournalIndex):
    """An index that lets the loop turn between objects: a directory answers at once, and Ctrl-C would wait for all."""

    def __init__(self, store: Store, keys: Keys) -> None:
        super().__init__(store, keys)
        #: Jobs of which records came since this was cleared.
        self.recorded: list[str] = []

    def add(self, block: JournalBlock, start: int = 0) -> None:
        self.recorded.extend(block.jobs[start:])
        super().add(block, start)

    async def _read(self, item: ListedObject) -> None:
        await asyncio.sleep(0)
        await super()._read(item)


class SnapshotReader:
    """The reader of a project's snapshots; each reading reads only what changed."""

    def __init__(self, store: Store, keys: Keys, signers: EntrySigners, wall: Callable[[], float] = time.time) -> None:
        """Read the project of these keys, as far as `signers` are trusted.

        `wall`: the clock that decides, for people only, which agents live.
        """
        self._store, self._keys, self._signers, self._wall = store, keys, signers, wall
        self._index = _PoliteIndex(store, keys)
        self._states: dict[str, SweepState] = {}
        #: Sweeps that no trusted signer applied, as their own signers have them.
        self._foreign: dict[str, SweepState] = {}
        self._relaxed = signers.read_strangers()
        self._torn: set[str] = set()
        #: Agent to the newest number of its heartbeat, and the time when we saw that change.
        self._moved: dict[str, tuple[int, float]] = {}
        self._repaired: set[str] = set()

    async def read(self, sweeps: Collection[str] | None = None) -> StoreSnapshot:
        """Read the named sweeps (None: all) and all agents. A name that was never applied has a state of head 0.

        Raises StoreError, SigningError.
        """
        await self._index.refresh()
        self._refresh_signers()
        names = await list_sweeps(self._store, self._keys) if sweeps is None else list(sweeps)
        for name in names:
            self._states[name] = await read_sweep(self._store, self._keys, self._signers, name, self._states.get(name))
        states = [await self._show(self._states[name]) for name in names]
        agents = [self._agent(beat) for agent, beat in self._index.beats.items() if is_agent_name(agent)]
        running, left = self._running(agents)
        now = self._wall()
        views = {
            s.name: SweepView(s, self._index, running, [o for o in states if o is not s], left, over=s.over(now))
            for s in states
        }
        queue = await self._queue(states)
        if any(agent.alive for agent in agents):
            queued = {sweep for of_fleet in queue.values() for sweep in of_fleet.sweeps}
        else:
            queued = set()
        await self._repair([view for name, view in views.items() if name not in queued])
        problems = _bound([line for state in states for line in state.skipped.lines])
        problems += _bound(list(self._index.corrupt.values()))
        problems += _bound(
            [
                f"{self._keys.beat(name)}: no agent has this name"
                for name in self._index.beats
                if not is_agent_name(name)
            ]
        )
        problems += _bound(sorted(self._torn))
        problems += [f"agent {agent.id}: {agent.alert}" for agent in agents if agent.alive and agent.alert]
        problems += [f"agent {agent.id}: {agent.trouble}" for agent in agents if agent.alive and agent.trouble]
        recorded, self._index.recorded = self._index.recorded, []
        at_work = running.keys() | left.keys()
        done, tallies = self._index.succeeded, self._index.tallies
        return StoreSnapshot(views, agents, problems, done, queue, at_work, recorded, tallies)

    def _refresh_signers(self) -> None:
        """Forget what was read if other entries may count now. Raises SigningError."""
        if self._signers.refresh():
            self._states.clear()
            self._foreign.clear()
            self._relaxed = self._signers.read_strangers()

    async def _show(self, state: SweepState) -> SweepState:
        """Return the state that people are shown: of a sweep that no trusted signer applied, what others did there."""
        if state.revision is not None or not state.skipped_entries.total:
            return state
        known = self._foreign.get(state.name)
        found = await read_sweep(self._store, self._keys, self._relaxed, state.name, known)
        self._foreign[state.name] = found
        return replace(found, skipped_entries=state.skipped_entries) if found.revision is not None else state

    def ship(self, agent: str) -> Mapping[str, Any]:
        """Return what an agent's newest heartbeat has of its shipment, as of the last reading."""
        beat = self._index.beats.get(agent)
        return beat.ship if beat else {}

    async def _queue(self, states: list[SweepState]) -> dict[str, FleetQueue]:
        fleets = {fleet for s in states if s.revision for fleet in s.revision.settings.providers}
        return {fleet: await read_queue(self._store, self._keys, fleet) for fleet in sorted(fleets)}

    def _lives(self, beat: Heartbeat) -> bool:
        """Return whether an agent lives: its heartbeat is recent by its clock, or changed while we looked."""
        seq, since = self._moved.get(beat.agent, (beat.seq, float("-inf")))
        if seq != beat.seq:
            since = self._wall()
        self._moved[beat.agent] = beat.seq, since
        later = [b for b in self._index.beats.values() if b.at > beat.at and _name(b.agent) == _name(beat.agent)]
        now = self._wall()
        # One that drains lives beside its successor, and takes nobody's place.
        gone = not (beat.vitals.get("draining") or all(other.vitals.get("draining") for other in later))
        return not beat.left and (now - since < beat.lease or (abs(now - beat.at) < beat.lease and not gone))

    def _agent(self, beat: Heartbeat) -> AgentView:
        alive = self._lives(beat)
        alert = beat.vitals.get("alert") or None
        fleet, machine = beat.agent.split("/")[:2]
        jobs = len(self._held(beat).keys() - beat.vitals.get("idle", ()))
        return AgentView(
            beat.agent, fleet, machine, beat.seq, beat.at, len(beat.held), jobs, beat.vitals, alert, alive, beat.left
        )

    def _held(self, beat: Heartbeat) -> dict[str, int]:
        """Return the jobs that an agent holds, each with the position of its newest claim."""
        held: dict[str, int] = {}
        for base, k in beat.held:
            if base.startswith(self._keys.jobs):
                job = base.removeprefix(self._keys.jobs).rstrip("/")
                held[job] = max(k, held.get(job, 0))
        return held

    def _running(self, agents: list[AgentView]) -> tuple[dict[str, RunningJob], dict[str, RunningJob]]:
        """Return what runs, and what ran when its agent was lost, by the last heartbeats; neither has ended since."""
        running: dict[str, RunningJob] = {}
        left: dict[str, RunningJob] = {}
        for agent in agents:
            held = self._held(self._index.beats[agent.id])
            told = {one["job"]: one for one in agent.vitals.get("running", ())}
            # Claimed ahead, or ended and being recorded: nothing of it runs.
            for job in held.keys() - agent.vitals.get("idle", ()):
                record, k = self._index.record(job), held[job]
                if record is None or record.k < k:  # else it has ended since that heartbeat
                    known = {name: told[job][name] for name in _TOLD if name in told.get(job, ())}
                    here = RunningJob(agent.id, k, agent.at, **known)
                    if agent.alive:
                        running[job] = here
                    elif here.metrics is not None and (job not in left or left[job].k < k):
                        left[job] = here
        return running, left

    async def _repair(self, views: Collection[SweepView]) -> None:
        """Read the logs of jobs whose end no journal has, of sweeps that no agent works on.

        Their agents died before they could write it, or the last heartbeat was lost with its machine's power.
        """
        for view in views:
            known = self._index.succeeded | self._repaired
            doubtful = [job for job in view.ids if job not in known and view.where(job) in _DOUBTFUL]
            for job in doubtful[:REPAIRS]:
                self._repaired.add(job)
                await self._read_log(job)

    async def _read_log(self, job: str) -> None:
        log = EntryLog(self._keys.job_log(job))
        await log.refresh(self._store)
        for k, entry in enumerate(log.entries, 1):
            if isinstance(entry, EndEntry):
                self._index.note(make_record(job, k, entry, writer=""))
            elif isinstance(entry, TornEntry):
                self._torn.add(f"{entry.key}: {entry.why or _CUT}; the job will be run again")


#: What has become of an entry whose bytes are none.
_CUT = "cut short (power was lost?)"


def _bound(lines: list[str]) -> list[str]:
    """Return the first of the lines, and how many more there are: anybody may have left any number of such objects."""
    return (
        lines if len(lines) <= NAMED_OBJECTS else [*lines[:NAMED_OBJECTS], f"and {len(lines) - NAMED_OBJECTS:,} more"]
    )


def _name(agent: str) -> str:
    """Return "fleet/name" of "fleet/name/boot": the same for all lives of one machine's agent."""
    return agent.rpartition("/")[0]
