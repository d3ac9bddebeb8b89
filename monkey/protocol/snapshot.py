"""Reading it all: what sweeps, jobs and agents are doing, from journals and heartbeats. Cheap and incremental."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from monkey.protocol.entries import End, Torn
from monkey.protocol.heartbeat import TAKE, Beat
from monkey.protocol.journal import record_of
from monkey.protocol.keys import Keys
from monkey.protocol.log import Log
from monkey.protocol.observer import Index
from monkey.protocol.sweeps import SweepState, list_sweeps, open_markers, peek_sweep
from monkey.protocol.verdicts import Verdict, verdict
from monkey.store.base import Store

#: Jobs of a sweep whose logs are read one by one in one reading, where the journals do not add up.
REPAIRS = 2_000


class State(StrEnum):
    """Where a job stands, for a sweep."""

    QUEUED = "queued"
    RUNNING = "running"
    FROZEN = "frozen"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"


@dataclass(frozen=True)
class JobView:
    """One job, as a sweep sees it."""

    job: str
    state: State
    #: Position of its newest claim in its log (names its directory of outputs); 0 if it never began.
    attempt: int = 0
    #: Failed attempts that are known.
    failures: int = 0
    agent: str | None = None
    #: The sweep under whose settings it runs or ran.
    sweep: str | None = None
    #: Other sweeps whose newest revision has the job too.
    shared: tuple[str, ...] = ()
    exit_code: int | None = None
    reason: str | None = None
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Seconds that the newest attempt ran; wall clocks of its begin and end.
    seconds: float | None = None
    started: float | None = None
    ended: float | None = None
    log_tail: list[str] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AgentView:
    """One agent, by its newest heartbeat."""

    #: "fleet/name/boot".
    id: str
    fleet: str
    seq: int
    #: Its wall clock when it beat.
    at: float
    claims: int
    vitals: dict[str, Any]
    alert: str | None
    #: Heard of lately (by wall clocks: for people, not for decisions), and not gone on purpose.
    alive: bool


class SweepView:
    """A sweep's newest revision and where its jobs stand."""

    def __init__(self, state: SweepState, index: Index, running: Mapping[str, _Running], others: list[SweepState]):
        """Look at the jobs of `state` through the journals' index."""
        self.state = state
        self._index, self._running, self._others = index, running, others

    @property
    def ids(self) -> Collection[str]:
        """The jobs of the newest revision, in the spec's order."""
        return self.state.revision.table.ids if self.state.revision else ()

    @property
    def counts(self) -> Counter[State]:
        """How many jobs are in each state."""
        return Counter(map(self.where, self.ids))

    @property
    def unfinished(self) -> int:
        """How many jobs are not final."""
        counts = self.counts
        return sum(counts[s] for s in (State.QUEUED, State.RUNNING, State.FROZEN, State.PAUSED))

    def where(self, job: str) -> State:
        """Return the state of one job, without the rest."""
        revision = self.state.revision
        job = revision.adopted.get(job, job) if revision and revision.adopted else job
        if job in self._index.succeeded:
            return State.SUCCEEDED
        running = self._running.get(job)
        if running:
            return State.FROZEN if running.frozen else State.RUNNING
        known = self._index.tally(job)
        if known and verdict(job, known, self.state) is Verdict.FAILED:
            return State.FAILED
        if self.state.cancelled is not None:
            return State.CANCELLED
        return State.PAUSED if self.state.paused else State.QUEUED

    @property
    def jobs(self) -> Mapping[str, JobView]:
        """All jobs, viewed one by one as they are asked for."""
        return _Jobs(self)

    def view(self, job: str) -> JobView:
        """Return all that is known of one job."""
        revision = self.state.revision
        told = revision.adopted.get(job, job) if revision else job
        record, running = self._index.record(told), self._running.get(told)
        tally = self._index.tally(told)
        shared = tuple(s.name for s in self._others if s.wants(job))
        view: dict[str, Any] = {"failures": len(tally.failed_at) if tally else 0, "shared": shared}
        if record:
            extra = record.extra
            view |= {
                "attempt": extra.get("out", record.k - 1 if record.outcome != "l" else record.k),
                "sweep": record.sweep,
                "seconds": record.seconds,
                "started": record.at - record.seconds,
                "ended": record.at,
            }
            view |= {name: extra[name] for name in _EXTRA if name in extra}
            view["exit_code"] = extra.get("exit_code", 0 if record.outcome == "s" else None)
        if running:
            view |= {
                "attempt": running.k,
                "agent": running.agent,
                "sweep": running.sweep or None,
                "started": running.began,
                "metrics": running.metrics,
                "seconds": None,
                "ended": None,
                "exit_code": None,
            }
        return JobView(job, self.where(job), **view)


#: What heartbeats tell of running jobs, beside the claim.
_TOLD = ("sweep", "began", "frozen", "metrics")

#: States that one more record could change.
_DOUBTFUL = (State.QUEUED, State.FAILED, State.CANCELLED, State.PAUSED)

_EXTRA = ("reason", "metrics", "outputs", "log_tail", "agent")


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


@dataclass(frozen=True)
class _Running:
    agent: str
    k: int
    sweep: str = ""
    began: float | None = None
    frozen: bool = False
    metrics: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Snapshot:
    """Everything, as of one reading."""

    sweeps: dict[str, SweepView]
    agents: list[AgentView]
    #: What people should know: entries that could not be read, by key.
    problems: list[str]
    #: Every job of the project that has succeeded.
    succeeded: set[str]
    #: Fleet to the sweeps that have open markers there, with their entries.
    queue: dict[str, dict[str, list[int]]]

    def alive(self, fleet: str) -> list[AgentView]:
        """Return the fleet's agents that were heard of lately."""
        return [agent for agent in self.agents if agent.fleet == fleet and agent.alive]


class Reader:
    """Reads the project, again and again: each time only what changed."""

    def __init__(self, store: Store, keys: Keys, wall: Callable[[], float] = time.time) -> None:
        """Read the project of these keys; `wall` is the clock by which agents are said to live, for people."""
        self._store, self._keys, self._wall = store, keys, wall
        self._index = Index(store, keys)
        self._states: dict[str, SweepState] = {}
        self._torn: set[str] = set()
        #: Agent to the newest number of its heartbeat, and when that was seen to move.
        self._moved: dict[str, tuple[int, float]] = {}
        self._repaired: set[str] = set()

    async def read(self, sweeps: Collection[str] | None = None) -> Snapshot:
        """Read the named sweeps (None: all) and all agents. A name that was never applied has a state of head 0.

        Raises StoreError.
        """
        await self._index.refresh()
        problems = []
        names = await list_sweeps(self._store, self._keys) if sweeps is None else list(sweeps)
        for name in names:
            state = await peek_sweep(self._store, self._keys, name, self._states.get(name))
            problems += [state.corrupt.message] if state.corrupt else []
            self._states[name] = state
        states = [self._states[name] for name in names]
        agents = [self._agent(beat) for beat in self._index.beats.values()]
        running = self._running(agents)
        views = {s.name: SweepView(s, self._index, running, [o for o in states if o is not s]) for s in states}
        queue = await self._queue(states)
        if any(agent.alive for agent in agents):
            at_work = {sweep for open_there in queue.values() for sweep in open_there}
        else:
            at_work = set()
        await self._repair([view for name, view in views.items() if name not in at_work])
        problems += self._index.corrupt.values()
        problems += [f"{key}: cut short (power was lost?); the job will be run again" for key in sorted(self._torn)]
        problems += [f"agent {agent.id}: {agent.alert}" for agent in agents if agent.alive and agent.alert]
        return Snapshot(views, agents, problems, self._index.succeeded, queue)

    async def _queue(self, states: list[SweepState]) -> dict[str, dict[str, list[int]]]:
        fleets = {fleet for s in states if s.revision for fleet in s.revision.settings.providers}
        return {fleet: await open_markers(self._store, self._keys, fleet) for fleet in sorted(fleets)}

    def _lives(self, beat: Beat) -> bool:
        """Say whether an agent was heard of lately: by its clock, or because its heartbeat moved while we looked."""
        seq, since = self._moved.get(beat.agent, (beat.seq, float("-inf")))
        if seq != beat.seq:
            since = self._wall()
        self._moved[beat.agent] = beat.seq, since
        later = [b for b in self._index.beats.values() if b.at > beat.at and _name(b.agent) == _name(beat.agent)]
        now = self._wall()
        return not beat.left and (now - since < TAKE or (abs(now - beat.at) < TAKE and not later))

    def _agent(self, beat: Beat) -> AgentView:
        alive = self._lives(beat)
        alert = beat.vitals.get("alert") or None
        fleet = beat.agent.partition("/")[0]
        return AgentView(beat.agent, fleet, beat.seq, beat.at, len(beat.held), beat.vitals, alert, alive)

    def _running(self, agents: list[AgentView]) -> dict[str, _Running]:
        running: dict[str, _Running] = {}
        for agent in agents:
            if not agent.alive:
                continue
            held: dict[str, int] = {}
            for base, k in self._index.beats[agent.id].held:
                if base.startswith(self._keys.jobs):
                    job = base.removeprefix(self._keys.jobs).rstrip("/")
                    held[job] = max(k, held.get(job, 0))
            told = {one["job"]: one for one in agent.vitals.get("running", ())}
            for job, k in held.items():
                record = self._index.record(job)
                if record is None or record.k < k:  # else it has ended since that heartbeat
                    running[job] = _Running(agent.id, k, **{n: told[job][n] for n in _TOLD if job in told})
        return running

    async def _repair(self, views: Collection[SweepView]) -> None:
        """Read the logs of jobs of which no journal knows the end, where nobody works on the sweep.

        The agents died before they could say, or their last heartbeat was lost with its machine's power.
        """
        for view in views:
            doubtful = [job for job in view.ids if job not in self._repaired and view.where(job) in _DOUBTFUL]
            for job in doubtful[:REPAIRS]:
                self._repaired.add(job)
                await self._read_log(job)

    async def _read_log(self, job: str) -> None:
        log = Log(self._keys.job_log(job))
        await log.refresh(self._store)
        for k, entry in enumerate(log.entries, 1):
            if isinstance(entry, End):
                self._index.note(record_of(job, k, entry))
            elif isinstance(entry, Torn):
                self._torn.add(entry.key)


def _name(agent: str) -> str:
    """Return "fleet/name" of "fleet/name/boot": one machine's agent, life after life."""
    return agent.rpartition("/")[0]
