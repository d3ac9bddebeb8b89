"""What people do during a run: two sweeps that share jobs are applied, revised, paused, resumed, cancelled, retried."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from monkey.errors import ConcurrentApply, NotFound
from monkey.protocol.entry_log import tally_log
from monkey.protocol.status.store_snapshot import JobState, SnapshotReader
from monkey.protocol.sweeps.queue_markers import mark_queue
from monkey.protocol.sweeps.revision import Revision
from monkey.protocol.sweeps.sweep_log import append_order, append_revision, read_sweep
from monkey.protocol.sweeps.sweep_state import SweepState
from monkey.protocol.sweeps.verdicts import Verdict, judge_job
from monkey.spec.job.job_table import JobTable, ParameterColumn
from monkey.spec.job.recipe import Recipe, SweepSettings
from monkey.spec.job.stop_when import StopRule
from monkey.spec.project.notify_channel import NotifyChannel
from tests.signing import SIGNERS
from tests.simulation.body import KEYS, job_id
from tests.simulation.garbage import Garbage, leave_litter
from tests.simulation.mutant import Mutant
from tests.simulation.net import Host, Net
from tests.simulation.recording import check_logged
from tests.simulation.result import Result
from tests.simulation.terms import Terms
from tests.simulation.world import Weather, World

#: Seconds by which people extend a sweep in the end: more than any run lasts.
ENOUGH_TIME = 60_000.0
#: Seconds after an order within which agents that see the store must have obeyed.
OBEY = 400.0
#: Seconds within which somebody is told of an end, whoever was killed at it.
TELLING = 600

#: Conditions that sweeps have, or none: jobs are ended alone, or with their sweep, sooner or later.
NAN = StopRule("loss", kind="nan")
SOON, LATE = (StopRule("accuracy", above=bound, sweep=True) for bound in (0.4, 0.9))
RULES: list[list[StopRule]] = [[], [], [NAN], [NAN, SOON], [NAN, LATE], [LATE]]


def revision(sweep: str, jobs: range, settings: SweepSettings) -> Revision:
    table = JobTable([job_id(n) for n in jobs], {"n": ParameterColumn(list(jobs), list(range(len(jobs))))})
    return Revision(sweep, Recipe("true", "0" * 64), settings, table, author="ana@lab")


#: What `retry` opens again.
AGAIN = (Verdict.FAILED, Verdict.STOPPED)


@dataclass
class Story:
    """The people's side of one run."""

    world: World
    sweeps: dict[str, Revision] = field(default_factory=dict)
    retries: Counter[str] = field(default_factory=Counter)
    #: What was last read of each sweep, by who waits for the end of all.
    known: dict[str, SweepState] = field(default_factory=dict)

    def __post_init__(self) -> None:
        host = Host(self.world, "people")
        self.net = Net(self.world, host, kind=True)
        self.random = self.world.random
        #: Of its own, so that the rest of each seed's story stays what it was without conditions.
        self.rules = random.Random(f"rules {self.world.seed}")
        self.terms, self.garbage = Terms(self.world, self.net), Garbage(self.world)
        self.reader = SnapshotReader(self.net, KEYS, SIGNERS, host.wall)

    def _settings(self, timeout: float | None) -> SweepSettings:
        rnd = self.random
        return SweepSettings(
            max_retries=rnd.randint(0, 2),
            max_concurrent_jobs=rnd.choice([None, None, 1, 2, 3]),
            fail_fast=rnd.random() < 0.25,
            priority=rnd.randint(0, 1),
            providers=["f"],
            grace=10,
            stop_when=self._rules(),
            notify=[NotifyChannel("webhook", "HOOK")] if self.world.weather.notify else [],
            expires=self.terms.draw(),
            timeout=timeout,
        )

    def _rules(self) -> list[StopRule]:
        return self.rules.choice(RULES) if self.world.weather.flaky else []

    async def apply(self, new: Revision) -> None:
        await self.garbage.insist(lambda: self._apply(new))

    async def _apply(self, new: Revision) -> None:
        name, new = new.sweep, replace(new, applied=self.terms.now() if new.settings.expires else 0.0)
        state = await read_sweep(self.net, KEYS, SIGNERS, name)
        self.sweeps[name] = new
        cap = new.settings.max_concurrent_jobs
        if cap is not None and (name in self.world.caps or not state.head):
            self.world.caps[name] = max(cap, self.world.caps.get(name, 0))
        elif cap is None:
            self.world.caps.pop(name, None)
        n = await append_revision(self.net, KEYS, SIGNERS, new, state.head)
        await mark_queue(self.net, KEYS, ["f"], name, n)

    async def order(self, name: str, kind: str) -> None:
        self.world.counts[kind] += 1
        jobs: dict[str, int] = {}
        if kind == "retry":
            jobs = await self._failed(name)
            self.retries.update(jobs.keys())
        n = await append_order(self.net, KEYS, SIGNERS, name, kind, reason="asked", jobs=jobs)
        if kind in ("resume", "retry"):
            await mark_queue(self.net, KEYS, ["f"], name, n)

    async def _failed(self, name: str) -> dict[str, int]:
        state = await read_sweep(self.net, KEYS, SIGNERS, name)
        assert state.revision
        logs = {job: self.world.log(KEYS.job_log(job)) for job in state.revision.table.ids}
        return {job: log.head for job, log in logs.items() if judge_job(job, tally_log(log), state) in AGAIN}

    async def revise(self, name: str) -> None:
        self.world.counts["revision"] += 1
        first = 0 if name == "a" else 3
        settings = replace(self.sweeps[name].settings, max_retries=self.random.randint(0, 2))
        if self.rules.random() < 0.5:
            settings = replace(settings, stop_when=self._rules())
        if self.terms.any:
            settings = replace(settings, expires=self.terms.draw())
        await self.apply(revision(name, range(first, first + self.random.randint(4, 7)), settings))

    async def live(self) -> None:
        world = self.world
        await self.apply(revision("a", range(6), self._settings(world.pilots.timeouts["a"])))
        await self.apply(revision("b", range(3, 9), self._settings(world.pilots.timeouts["b"])))
        await self._litter()
        world.raise_machines()
        watch = world.loop.create_task(self._watch())
        scatter = world.loop.create_task(self.garbage.scatter())
        while world.weather.orders and not world.calm:
            await asyncio.sleep(self.random.expovariate(1 / 150))
            await self._interfere(self.random.choice("ab"))
        await asyncio.sleep(max(0.0, world.calm_from - world.loop.time()))
        for name in self.sweeps:
            await self.order(name, "resume")
            await self.terms.extend(name, ENOUGH_TIME)
        # What an agent knew that was just killed is told by the next one; so are people.
        while not await self._over() or any(life.busy for life in world.current.values()):
            if world.loop.time() > world.mutant.patience:
                world.violations["never ends"] += 1
                break
            await asyncio.sleep(5)
        world.finished = world.loop.time()
        for task in (watch, scatter):
            if task.done():
                task.result()
            task.cancel()
        await self._farewell()

    async def _interfere(self, name: str) -> None:
        await self.terms.see(name)
        kind = self.random.choice(["pause", "resume", "cancel", "retry", "revise", "both"])
        if kind == "both":
            await self._two_people(name)
            return
        if kind == "revise":
            await self.revise(name)
            return
        await self.order(name, kind)
        if kind in ("pause", "cancel") and self.random.random() < 0.5:
            await asyncio.sleep(OBEY)
            await self._obeyed(name)
            await self.order(name, "resume")

    async def _obeyed(self, name: str) -> None:
        """Nothing of a sweep that does not want it may still run, except where the order cannot have been heard."""
        world, now = self.world, self.world.loop.time()
        state = await read_sweep(self.net, KEYS, SIGNERS, name)
        over = state.over(self.terms.now() - OBEY)
        if (state.active and not over) or world.fault_rate or world.away(now) or world.away(now - OBEY):
            return
        heard = [h.name for h in world.hosts if h.paused_until < now - OBEY / 2]
        for execution in world.running():
            if world.sweep_of(execution) == name and execution.body.host.name in heard:
                world.violations["an order was not obeyed"] += 1
        for life in (world.current[host] for host in heard if host in world.current):
            if not life.main.done() and any(w.sweep == name and not w.running for w in life.agent.attempts.live):
                world.violations["an order was not obeyed by what is being prepared"] += 1
        world.counts["expiry obeyed" if over else "order obeyed"] += 1

    async def _over(self) -> bool:
        for name in self.sweeps:
            # From what it knows, as agents do: from the start, this took a sixth of each life.
            state = self.known[name] = await read_sweep(self.net, KEYS, SIGNERS, name, self.known.get(name))
            assert state.revision
            if state.goal or (state.cancelled and state.cancelled.startswith("fail_fast")):
                continue
            for job in state.revision.table.ids:
                if judge_job(job, tally_log(self.world.log(KEYS.job_log(job))), state) is Verdict.OPEN:
                    return False
        return True

    async def _litter(self) -> None:
        """Leave things in the store that are not what they should be: they must be reported, and harm nothing."""
        leave_litter(self.world)
        with pytest.raises(NotFound):
            await append_order(self.net, KEYS, SIGNERS, "nobody", "pause")
        await append_revision(self.net, KEYS, SIGNERS, revision("e", range(99, 100), SweepSettings(providers=["f"])), 0)

    async def _watch(self) -> None:
        """Look at everything now and then, as `monkey status` and an apply that waits do."""
        while True:
            await asyncio.sleep(self.random.uniform(20, 60))
            await self.net.put(KEYS.watcher("people"), b"{}")
            for name in await self.terms.over(self.sweeps, OBEY):
                await self._obeyed(name)
            seen = await self.reader.read()
            assert len(seen.problems) >= 2, "the litter is reported"
            for sweep in seen.sweeps.values():
                assert sweep.unfinished <= sweep.counts.total() == len(list(sweep.jobs.values()))
                met = [job for job in map(job_id, range(12)) if sweep.met(job)]
                assert sweep.active or not sweep.counts[JobState.QUEUED], "nothing waits that may not run"
                assert sweep.left_out + len(met) >= sweep.counts[JobState.STOPPED] and "nobody" not in sweep.jobs
                assert sweep.nonfinite == Counter(
                    name for job in sweep.jobs.values() for name, seen in job.metrics.items() if seen.get("nonfinite")
                )
                self.world.counts["nonfinite seen"] += sweep.nonfinite.total()
            assert len(seen.alive("f")) <= len(seen.agents)

    async def _two_people(self, name: str) -> None:
        """Two apply at once, from the same plan: one of them is told that it lost."""
        state = await read_sweep(self.net, KEYS, SIGNERS, name)
        both = [append_revision(self.net, KEYS, SIGNERS, self.sweeps[name], state.head) for _ in range(2)]
        answers = await asyncio.gather(*both, return_exceptions=True)
        if self.garbage.any and all(isinstance(answer, ConcurrentApply) for answer in answers):
            return  # garbage came before both
        assert sorted(type(answer).__name__ for answer in answers) == ["ConcurrentApply", "int"], answers
        await mark_queue(self.net, KEYS, ["f"], name, state.head + 1)
        self.world.counts["concurrent apply"] += 1
        await asyncio.gather(self.order(name, "resume"), self.order(name, "resume"))

    async def _farewell(self) -> None:
        """Let the agents end what they have in hand and leave; then the journals must know every success."""
        await asyncio.sleep(60)
        # Who was to tell may have been killed at it: another takes that over when its lease has run out.
        for _ in range(TELLING):
            await asyncio.sleep(1.0 if self._untold() else 0)
        lives = list(self.world.current.values())
        self._check_told()
        for life in lives:
            life.agent.stop()
        for life in lives:
            await asyncio.wait([life.main], timeout=1000)
            if not life.main.done():
                self.world.violations["an agent did not leave"] += 1
        last = await SnapshotReader(self.net, KEYS, SIGNERS, self.net.host.wall).read()
        known = last.succeeded
        if any(view.unfinished for name, view in last.sweeps.items() if name in self.sweeps and view.state.active):
            self.world.violations["the last status does not add up"] += 1
        for n in range(12):
            self._check(job_id(n), known)
        for name in self.sweeps:
            self.world.endings.check(name)
        await check_logged(self.world, self.net)

    def _untold(self) -> list[str]:
        """Return the sweeps that came to their end without anybody being told."""
        states = self.world.endings.states if self.world.weather.notify else {}
        ended = [n for n, s in states.items() if s.cause is not None or (not s.paused and s.cancelled is None)]
        return [name for name in ended if not self.world.told[name]]

    def _check_told(self) -> None:
        """Everybody must have been told of each sweep that came to its end, and once where nobody was killed."""
        world = self.world
        if self._untold():
            world.violations["nobody was told of an end"] += 1
        twice = sum(count > 1 for count in world.told_events.values())
        world.counts["told twice"] += twice
        if twice and not (world.counts["crash"] + world.counts["crash while it is told"] + world.counts["outage"]):
            world.violations["told twice, and nobody was killed"] += 1

    def _check(self, job: str, known: set[str]) -> None:
        caps = [r.settings.max_retries for r in self.sweeps.values()]
        self.world.check_log(job, (1 + self.retries[job]) * (1 + max(2, *caps)))
        succeeded = tally_log(self.world.log(KEYS.job_log(job))).succeeded
        wanted = any(job in r.rows for r in self.sweeps.values())
        if wanted and succeeded and job not in known:
            self.world.violations["a success that no journal knows"] += 1
        if job in known and not succeeded:
            self.world.violations["a journal knows more than the log"] += 1


def play(seed: int, weather: Weather | None = None, mutant: Mutant | None = None) -> Result:
    """Run one seed."""
    world = World(seed, weather, mutant)
    asyncio.set_event_loop(world.loop)
    story = Story(world)
    world.run(story.live())
    executions = sum(world.executions.values())
    jobs = sum(1 for n in range(12) if world.executions[job_id(n)])
    dear = executions > jobs + world.killed_slots
    return Result(seed, world.violations, world.counts, executions, jobs, world.loop.moment, dear)
