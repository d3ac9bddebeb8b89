"""One seed: a store, a few machines, two sweeps that share jobs, and everything that can go wrong, on virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import random
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from monkey.protocol.entries import Claim, ClaimEnd, EndEntry, TornEntry, decode_entry
from monkey.protocol.entry_log import EntryLog, has_own_checkpoint
from monkey.protocol.wakeup import MANY
from monkey.spec.job.lease_length import LEASE
from monkey.store.memory import MemoryState
from monkey.store.store_port import ListedObject
from tests.signing import SIGNERS
from tests.simulation.body import KEYS, Execution
from tests.simulation.endings import Endings
from tests.simulation.life import Life
from tests.simulation.loop import VirtualLoop
from tests.simulation.mutant import Mutant
from tests.simulation.net import Host
from tests.simulation.pilots import Pilots


@dataclass
class Weather:
    """What a scenario fixes; None: drawn from the seed."""

    fault_rate: float | None = None
    agents: int | None = None
    outage: tuple[float, float] | None = None
    orders: bool = True
    crashes: bool = True
    #: Does the power fail with some of the crashes?
    power: bool = True
    pauses: bool = True
    #: Seconds of pauses, and the mean between them.
    pause: tuple[float, float] = (30, 400)
    pause_every: float = 600
    calm_from: float | None = None
    #: Seconds that jobs run, and whether they fail by themselves now and then.
    jobs: tuple[float, float] | None = None
    flaky: bool = True
    #: Is somebody told of the sweeps' ends, by a server that is as unreliable as the store?
    notify: bool = False
    #: Do some sweeps expire?
    expires: bool = True
    #: Do jobs log, and continue from checkpoints?
    records: bool = False
    #: May the time of machines end? Do few agents share a roster, as in a large fleet? Do agents' leases differ?
    pilots: bool = True
    crowd: bool = False
    leases: bool = False


class World:
    """Everything there is in one run."""

    def __init__(self, seed: int, weather: Weather | None = None, mutant: Mutant | None = None) -> None:
        self.weather, self.mutant = weather or Weather(), mutant or Mutant()
        self.seed, self.random = seed, random.Random(seed)
        self.loop, self.state = VirtualLoop(), MemoryState()
        self.counts, self.violations = Counter[str](), Counter[str]()
        self.executions: Counter[str] = Counter()
        self.active: defaultdict[str, list[Execution]] = defaultdict(list)
        self.caps: dict[str, int] = {}
        self.hosts: list[Host] = []
        self.current: dict[str, Life] = {}
        self.lives = 0
        #: Slots of agents that were killed.
        self.killed_slots = 0
        self.finished: float | None = None
        self.signers = SIGNERS
        #: What attempts logged that were given up in order: by job, and position of the claim.
        self.logged: dict[tuple[str, int], bytes] = {}
        #: Keys of entries that a forger wrote.
        self.forged: set[str] = set()
        self.endings, self.pilots = Endings(self), Pilots(self)
        #: What people were told: by sweep, and by event.
        self.told, self.told_events = Counter[str](), Counter[str]()
        #: Number of living agents above which they share a roster. The seeds without one stay what they are.
        self.crowd = 0 if self.weather.crowd or seed % 11 == 5 else MANY
        self.poll = max(self.random.choice([2.0, 7.0, 15.0, 15.0]), 0.0 if self.crowd else 15.0)
        #: In one seed of ten agents' leases differ. Their jobs last: what is over cannot be taken over too soon.
        self.leases = self.weather.leases or seed % 10 == 9
        # Short jobs are claimed ahead; those that are over in a moment stand in line, if the store is as quick.
        lasting = [(100.0, 600.0)] if self.leases else [(1, 120), (1, 120), (0.5, 9), (0.01, 0.09)]
        self.jobs = self.weather.jobs or self.random.choice(lasting)
        self.quick = self.jobs[1] < 0.1
        self.latency = (0.0001, 0.002) if self.quick else (0.01, 0.3)
        rate = self.weather.fault_rate
        self.fault_rate = self.random.choice([0, 0.05, 0.3]) if rate is None else rate
        self.calm_from = self.weather.calm_from or self.random.uniform(400, 1500)
        self.outage = self.weather.outage or self._draw_outage()

    def _draw_outage(self) -> tuple[float, float]:
        begin = self.random.uniform(0, self.calm_from)
        return (begin, begin + self.random.choice([0, 0, 0, 40, 120, 600]))

    @property
    def calm(self) -> bool:
        return self.loop.time() >= self.calm_from

    def away(self, moment: float) -> bool:
        return self.outage[0] <= moment < self.outage[1]

    # -- the store itself ---------------------------------------------------------------------------------------------

    def create(self, key: str, data: bytes) -> bool:
        overwrites = self.mutant.end_overwrites and b'"kind":"end"' in data
        if key in self.state.objects and not overwrites:
            return False
        self.write(key, data)
        return True

    def write(self, key: str, data: bytes) -> None:
        self.state.write(key, data)
        if key.startswith(KEYS.sweeps):
            self.endings.written(key, data)
        if key.startswith(KEYS.stops):
            self.endings.stopped(key, data)
        if key.startswith(KEYS.jobs) and "/out/" not in key:
            self._written(key, data)

    def listing(self, prefix: str, after: str) -> list[ListedObject]:
        keys, objects = self.state.keys, self.state.objects
        places = range(max(bisect_left(keys, prefix), bisect_right(keys, after)), len(keys))
        found = takewhile(lambda key: key.startswith(prefix), map(keys.__getitem__, places))
        return [ListedObject(key, len(objects[key][0]), str(objects[key][1])) for key in found]

    def log(self, base: str) -> EntryLog:
        log = EntryLog(base)
        while (key := log.key(log.head + 1)) in self.state.objects:
            log.entries.append(decode_entry(key, self.state.objects[key][0]))
        return log

    # -- what must never happen, looked at the moment it would -------------------------------------------------------

    def _written(self, key: str, data: bytes) -> None:
        job = key.removeprefix(KEYS.jobs).partition("/")[0]
        entry = decode_entry(key, data)
        log = self.log(KEYS.job_log(job))
        if not isinstance(entry, Claim):
            self.endings.ended(job, entry, log.head)
            self.pilots.ended(job, entry, log)
            return
        self.endings.claimed(job, entry, log)
        self.pilots.claimed(job, entry, log)
        before = log.entries[-2] if log.head > 1 else None
        if isinstance(before, Claim) and not entry.continues:
            self.counts["takeover after a long lease"] += before.lease > LEASE
            same = before.agent.rpartition("/")[0] == entry.agent.rpartition("/")[0]
            self.counts["takeover on the same machine" if same else "takeover"] += 1
            self.counts["takeover of one that got on"] += has_own_checkpoint(log, log.head)
        saved = KEYS.checkpoint(job, entry.checkpoint, 0).rpartition("/")[0] + "/"
        if entry.checkpoint and not self.listing(saved, ""):
            self.violations["a claim tells of a checkpoint that nobody saved"] += 1
        if isinstance(before, Claim) and entry.continues and before.sweep != entry.sweep:
            self.counts["handover"] += 1
        if entry.continues and self.weather.pauses and not self.calm and self.random.random() < 0.1:
            # The worst moment for a machine to stand still: before it hears that it may go on.
            host = next(host for host in self.hosts if host.name == entry.agent.split("/")[1])
            host.paused_until = self.loop.time() + self.random.uniform(30, 300)
            self.counts["pause while asking again"] += 1
        if any(e.body.host.name != entry.agent.split("/")[1] and e.active for e in self.active[job]):
            self.violations["work after a takeover"] += 1

    def launched(self, execution: Execution) -> None:
        self.executions[execution.attempt.job] += 1

    def works(self, execution: Execution) -> None:
        """An execution begins or resumes."""
        job = execution.attempt.job
        self.active[job] = [*(e for e in self.active[job] if e.outcome is None and e is not execution), execution]
        if sum(e.active for e in self.active[job]) > 1:
            self.violations["two executions at once"] += 1
        tail = self.log(KEYS.job_log(job)).tail
        if not isinstance(tail, Claim) or tail.agent.split("/")[1] != execution.body.host.name:
            self.violations["work without a claim"] += 1
        self._count_permits()

    def sweep_of(self, execution: Execution) -> str:
        life = self.current.get(execution.body.host.name)
        work = life.agent.attempts.in_hand.get(execution.attempt.job) if life and life.body is execution.body else None
        return work.sweep if work else execution.attempt.sweep

    def running(self) -> list[Execution]:
        return [e for es in self.active.values() for e in es if e.active]

    def _count_permits(self) -> None:
        if self.caps:
            counts = Counter(map(self.sweep_of, self.running()))
            for sweep, cap in self.caps.items():
                if counts[sweep] > cap:
                    self.violations["more than max_concurrent_jobs"] += 1

    # -- machines -----------------------------------------------------------------------------------------------------

    def raise_machines(self) -> None:
        for i in range(self.weather.agents or self.random.randint(2, 4)):
            host = Host(self, f"h{i}")
            self.hosts.append(host)
            self.loop.create_task(self._keep(host))

    async def _keep(self, host: Host) -> None:
        """Keep an agent on the host: it starts, it is killed, it is paused, it starts again."""
        await asyncio.sleep(self.random.uniform(0, 5))
        while True:
            self.current[host.name] = life = Life(self, host, self.mutant)
            while not life.main.done():
                await asyncio.wait([life.main], timeout=self.random.expovariate(1 / self.weather.pause_every))
                if life.main.done():
                    break  # killed while an end was recorded
                if self.calm:
                    await life.main
                elif self.weather.crashes and self.random.random() < 0.4:
                    self.counts["crash"] += 1
                    life.crash()
                    if self.weather.power and self.random.random() < 0.2:
                        self._lose_power(life)
                    elif self.random.random() < 0.5:
                        self.state.remove(KEYS.beat(life.agent.identity.agent))  # as a clean-up might
                    await asyncio.gather(life.main, return_exceptions=True)
                elif self.weather.pauses:
                    self.counts["pause of a machine"] += 1
                    host.paused_until = self.loop.time() + self.random.uniform(*self.weather.pause)
            if self.finished is not None:
                return
            await asyncio.sleep(self.random.choice([1, 10, 200]))

    def _lose_power(self, life: Life) -> None:
        """Cut short what the machine wrote last and did not sync: the agent's newest claim and heartbeat; exits."""
        life.host.exits.clear()
        life.host.disk.clear()
        me = life.agent.identity.agent.encode()
        claims = [key for key, (data, _) in self.state.objects.items() if me in data and b'"claim"' in data]
        newest = max(claims, key=lambda key: self.state.objects[key][1], default=None)
        for key in filter(None, (newest, KEYS.beat(life.agent.identity.agent))):
            log = key.rpartition("/")[0] + "/"
            if key in self.state.objects and (key.endswith("/beat") or self.log(log).head == int(key[-8:])):
                self.counts["loss of power"] += 1
                data = self.state.objects[key][0]
                self.state.write(key, data[: self.random.randrange(len(data))])

    # -- the verdict on the run ---------------------------------------------------------------------------------------

    def check_log(self, job: str, failures: int) -> None:
        """Look at a job's log after the run; `failures`: the most failed ends that it may have."""
        entries = self.log(KEYS.job_log(job)).entries
        ends = [e for e in entries if isinstance(e, EndEntry)]
        successes = [e for e in ends if e.outcome is ClaimEnd.SUCCEEDED]
        if len(successes) > 1 or (successes and entries[-1] is not successes[0]):
            self.violations["a success does not end its log"] += 1
        if sum(e.outcome is ClaimEnd.FAILED for e in ends) > failures:
            self.violations["more failures than allowed"] += 1
        for before, entry in zip([None, *entries], entries, strict=False):
            if isinstance(entry, EndEntry) and not isinstance(before, TornEntry):
                mine = isinstance(before, Claim) and (before.agent, before.nonce) == (entry.agent, entry.nonce)
                if not mine:
                    self.violations["an end of another's claim"] += 1

    def run(self, life: Any) -> None:
        """Run the coroutine `life` to its end on the virtual clock."""
        try:
            self.loop.run_until_complete(life)
        finally:
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            with contextlib.suppress(Exception):
                self.loop.run_until_complete(asyncio.sleep(0.01))
            self.loop.close()
