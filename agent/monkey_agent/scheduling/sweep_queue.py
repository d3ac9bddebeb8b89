"""What the fleet is asked to do: queue markers, the sweeps behind them, and who watches. Read with every look."""

from __future__ import annotations

from collections.abc import Mapping

from monkey.errors import StoreError
from monkey.protocol.sweeps.queue_markers import FleetQueue, hint_idle, read_queue
from monkey.protocol.sweeps.sweep_log import append_stop
from monkey.protocol.sweeps.sweep_state import SweepState
from monkey.protocol.sweeps.verdicts import Verdict, judge_job
from monkey.protocol.wakeup import SELDOM, wake_agents
from monkey.spec.job.stop_when import StopEvidence, find_met_rule
from monkey.spec.yaml.units import format_duration
from monkey_agent.notifications.notifier import Notifier
from monkey_agent.scheduling.agent_context import AgentContext
from monkey_agent.scheduling.job_candidates import JobCandidates, LeftSweep
from monkey_agent.scheduling.sweep_reader import SweepReader

#: Sweeps of which other agents hint that nothing is left, and that one look checks.
CHECKED = 32
#: Seconds after which a watcher's marker that does not change counts for nothing.
WATCH = 10.0
#: Seconds after which an agent with work lists the queue and the watchers again, though no bell told of anything new
#: there; and in a large fleet. An agent without work lists them at each look.
_RELIST, _RELIST_CROWDED = 120.0, 1200.0


class SweepQueue:
    """The sweeps that have work for this fleet, as of the last look."""

    def __init__(self, context: AgentContext, notifier: Notifier) -> None:
        """Read the queue of the agent's fleet; `notifier` sends messages about its sweeps."""
        self.notifier = notifier
        self._store, self._keys, self._fleet = context.store, context.keys, context.identity.fleet
        self._observer, self._clock, self._random = context.observer, context.clock, context.random
        self._create, self._journal, self._signers = context.create, context.heart.journal, context.signers
        self._queue = FleetQueue({}, {})
        #: Sweeps that this agent sees to, with the entries that left work.
        self._markers: dict[str, frozenset[int]] = {}
        #: Sweep to its markers when this agent saw that nothing is left.
        self._checked: dict[str, frozenset[int]] = {}
        #: Are there hints that no look has checked yet?
        self._unchecked = False
        self._reader = SweepReader(context)
        self.sweeps = self._reader.states
        #: Boards of the sweeps that may have a job for us.
        self.by_sweep: dict[str, JobCandidates] = {}
        #: Sweep to what ends it: a job, and the position of its end.
        self._endings: dict[str, tuple[str, int]] = {}
        #: Ends that do not end a sweep of this version, by the job's log, though a journal says so.
        self._refuted: set[tuple[str, tuple[object, ...], tuple[str, int]]] = set()
        self._watchers: dict[str, tuple[str, float]] = {}
        self.watched = False
        #: May the queue or the watchers have changed? The bell rings then, where listing them costs money.
        self.news, self._listed = True, float("-inf")
        #: Sweeps that ask for more than this machine could ever offer, and why; all these are for other machines.
        self.unfit: dict[str, LeftSweep] = {}
        #: Sweeps of which no job can run here before this machine has what it lacks: a container runtime.
        self.lacking: dict[str, LeftSweep] = {}
        #: Sweeps of which no job is begun here for a moment, and why: the agent stays, and tries again.
        self.resting: dict[str, str] = {}
        #: Sweeps whose jobs may take longer than this machine has left, and the seconds that they may take.
        self.untimely: dict[str, float] = {}
        self._time, self._may_run = context.time, context.identity.may_run

    async def look(self, at_work: set[str]) -> None:
        """Read markers, heartbeats, watchers and the sweeps that have work or are `at_work`. Raises StoreError."""
        await self._observer.look()
        if self._reader.refresh_signers():
            self._checked.clear()
        relist = self._is_list_due()
        if relist:
            self._queue = await read_queue(self._store, self._keys, self._fleet)
        self._markers = self._choose_sweeps()
        for name in sorted({*self._markers, *at_work}):
            await self._read(name)
        for name in self.by_sweep.keys() - self._markers.keys():
            del self.by_sweep[name]
        if relist:
            await self._watch()
            self.news, self._listed = False, self._clock.now()

    def _is_list_due(self) -> bool:
        """Are the queue and the watchers to be listed at this look?"""
        cheap = self._store.poll < SELDOM
        old = self._clock.now() - self._listed >= (_RELIST_CROWDED if self._observer.crowded else _RELIST)
        return cheap or self.news or self.watched or not self.by_sweep or old

    async def brought(self) -> bool:
        """Say whether there is work now that was not there at the last look. Raises StoreError."""
        now = await read_queue(self._store, self._keys, self._fleet)
        return any(entries - self._queue.markers.get(name, frozenset()) for name, entries in now.markers.items())

    def _choose_sweeps(self) -> dict[str, frozenset[int]]:
        """Return the sweeps to see to: those with open markers, and some whose hints this agent has yet to check."""
        left = {name: of for name, of in self._queue.markers.items() if self._checked.get(name) != of}
        hinted = [name for name in left if name not in self._markers and not self._queue.find_open(name)]
        later = set(hinted[CHECKED:])
        self._unchecked = bool(later)
        return {name: of for name, of in left.items() if name not in later}

    async def _read(self, name: str) -> None:
        changed, state = await self._reader.read(name), self.sweeps.get(name)
        if state is None or self._reader.is_aside(state) or not self._ours(state):
            self.by_sweep.pop(name, None)
        elif changed or name not in self.by_sweep:
            self.by_sweep[name] = JobCandidates(state, self._random)
            self.unfit.pop(name, None)
            self.untimely.pop(name, None)

    def set_aside(self, name: str, exc: Exception) -> None:
        """Leave a sweep alone in which something unexpected happened, until its log says more."""
        self._reader.set_aside(name, exc)
        self.by_sweep.pop(name, None)
        self._endings.pop(name, None)

    def _ours(self, state: SweepState) -> bool:
        """Does it have work that we may do now?"""
        return (
            state.active
            and state.name in self._markers
            and state.revision is not None
            and self._may_run(state.revision)
            and not self._reader.list_refused_secrets(state)
        )

    async def _watch(self) -> None:
        now, seen = self._clock.now(), {}
        for item in await self._store.list(self._keys.watchers):
            version, since = self._watchers.get(item.key, ("", now))
            seen[item.key] = (item.version, since if version == item.version else now)
        self._watchers = seen
        self.watched = any(now - since < WATCH for _, since in seen.values())

    def order(self) -> list[str]:
        """Return the sweeps to take work from, the most urgent first, in turn where they are equal."""
        names = [name for name in self._open() if name not in self.resting]
        self._random.shuffle(names)
        return sorted(names, key=lambda name: -self.by_sweep[name].revision.settings.priority)

    def _open(self) -> list[str]:
        closed = self.left_to_others.keys() | self.untimely.keys()
        return [name for name, of in self.by_sweep.items() if name not in closed and not self.over(of.state)]

    @property
    def left_to_others(self) -> dict[str, LeftSweep]:
        """Return the sweeps of which this machine can run no job, and why."""
        return {**self.unfit, **self.lacking}

    def over(self, state: SweepState) -> bool:
        """Has the sweep expired, or is it about to?"""
        return state.over(self._clock.wall())

    def wanted(self, sweep: str, job: str) -> bool:
        """Does the sweep want the job to run now?"""
        state = self.sweeps.get(sweep)
        return state is not None and state.active and state.wants(job) and not self.over(state)

    def wanted_by(self, job: str) -> SweepState | None:
        """Return a sweep of this fleet that wants the job and for which it is not final."""
        for name, candidates in self.by_sweep.items():
            if not self.wanted(name, job):
                continue
            known = self._observer.tally(job)
            if known is None or judge_job(job, known, candidates.state) is Verdict.OPEN:
                return candidates.state
        return None

    def why_not(self, sweep: str) -> str:
        """Say why the sweep wants a job no more."""
        state = self.sweeps.get(sweep)
        if state is None:
            return "the sweep is gone"
        if state.cancelled is not None:
            word = "stopped" if state.goal else "cancelled"
            return word if state.cancelled == "cancelled" else f"{word}: {state.cancelled}"
        if state.paused:
            return "paused"
        return "the sweep expires" if state.active and self.over(state) else "no longer part of the sweep"

    def job_failed(self, candidates: JobCandidates, job: str, k: int) -> None:
        """Note a job that is failed for good, for sweeps that end with their first failure."""
        if candidates.revision.settings.fail_fast:
            self._note_end(candidates, (job, k))

    def job_met(self, candidates: JobCandidates, job: str, met: Mapping[int, StopEvidence]) -> None:
        """Note a job that met a condition which ends its sweep: it may have succeeded all the same.

        `met`: what it measured, by the positions of the ends in its log. What it measured before a retry is
        void.
        """
        for k, seen in met.items():
            rule = find_met_rule(candidates.revision.settings.stop_when, seen)
            if rule is not None and rule.sweep and k > candidates.state.retries.get(job, 0):
                self._note_end(candidates, (job, k))

    def _note_end(self, candidates: JobCandidates, cause: tuple[str, int]) -> None:
        state = candidates.state
        if cause not in state.acted and (state.name, state.version, cause) not in self._refuted:
            candidates.ending = True
            self._endings.setdefault(state.name, cause)

    def _look_at_failed(self, candidates: JobCandidates) -> None:
        """Note jobs that failed for good here, and met a condition since then: a sweep that shares them ran them."""
        for job, (_, k) in candidates.finals.items():
            known = self._observer.record(job)
            if known and known.k > k and "met" in known.extra:
                self.job_met(candidates, job, {known.k: StopEvidence.from_json(known.extra["met"])})

    async def tidy(self, at_work: set[str]) -> None:
        """Act on what was noticed: end sweeps that fail fast or reached a goal; say of which nothing is left."""
        for candidates in self.by_sweep.values():
            if candidates.ends_early:
                self._look_at_failed(candidates)
        for name in sorted({*self._endings, *self._markers}):
            try:
                await self._tidy(name, at_work)
            except StoreError:
                raise
            except Exception as exc:
                self.set_aside(name, exc)
        self.notifier.forget(self._markers)
        left = [candidates.state for candidates in self.by_sweep.values() if not candidates.done]
        await self.notifier.listen(left, self.left_to_others, self.over, busy=bool(at_work))

    async def _tidy(self, name: str, at_work: set[str]) -> None:
        if name in self._endings:
            await self._append_stop(name)
        # Not even a notice may have what its signer may not name.
        refused = name in self.sweeps and self._reader.list_refused_secrets(self.sweeps[name])
        idle = name in self._markers and name not in at_work and not refused and self._nothing_left(name)
        if idle and self.notifier.told(self.sweeps[name], self.by_sweep.get(name)):
            await self._hint_idle(name)

    async def _append_stop(self, name: str) -> None:
        cause, known = self._endings[name], self.sweeps[name]
        if await append_stop(self._store, self._keys, self._signers, known, cause, self._create) is known:
            self._refuted.add((name, known.version, cause))
            if name in self.by_sweep:
                self.by_sweep[name].ending = False
        elif self._observer.crowded:
            await wake_agents(self._store, self._keys)  # most of them look seldom
        del self._endings[name]

    def _nothing_left(self, name: str) -> bool:
        state, candidates = self.sweeps.get(name), self.by_sweep.get(name)
        if state is None or state.revision is None or state.paused:
            return False
        if state.cancelled is not None or self._fleet not in state.revision.settings.providers:
            return True
        # Where its log is to say how it ended, people are told that, and nothing before the next look has read it.
        return candidates is not None and candidates.done and not candidates.ending and not self._journal.open

    async def _hint_idle(self, name: str) -> None:
        head, markers = self.sweeps[name].head, self._markers.pop(name)
        for n in sorted(self._queue.find_open(name)):
            if n <= head:
                await hint_idle(self._store, self._keys, self._fleet, name, n, self._create)
        if max(markers) <= head:
            self._checked[name] = markers
        self.by_sweep.pop(name, None)

    @property
    def finished(self) -> bool:
        """Has a sweep no job left that is not final?"""
        return any(candidates.done for candidates in self.by_sweep.values())

    @property
    def busy(self) -> bool:
        """Is there a sweep that this machine may have to work on, or a notice to send?"""
        return bool(self._open()) or self.notifier.waits or self._unchecked

    @property
    def lacks_time(self) -> bool:
        """Is there a sweep that only lacks time, and would have it on a machine whose time begins now?"""
        return any(self._time.ever_fits(most) for name, most in self.untimely.items() if name in self.by_sweep)

    @property
    def secrets(self) -> frozenset[str]:
        """Names of all secrets that any sweep declared: who does not list one is not to inherit it."""
        return self._reader.secrets

    @property
    def expired(self) -> bool:
        """Is there work, and may none of it be done any more, since its sweeps expire?"""
        return bool(self.by_sweep) and all(self.over(candidates.state) for candidates in self.by_sweep.values())

    @property
    def alerts(self) -> list[str]:
        """What people should know."""
        left = {name: of.why for name, of in self.left_to_others.items()}
        unfit = [f"{name}: {why}" for name, why in {**left, **self.resting}.items()]
        late = [
            f"{name}: its jobs may take {format_duration(most)} (timeout), longer than a machine's time here"
            for name, most in self.untimely.items()
            if not self._time.ever_fits(most)
        ]
        return [*self._reader.alerts, *unfit, *late, *self.notifier.troubles.values()]
