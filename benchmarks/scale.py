"""What a large fleet on one bucket costs: the real agents on a virtual clock, every request counted, at S3's prices.

AGENTS agents work for an hour on jobs of ten minutes, as agents of a large fleet do: they share a roster. A thousand
agents on a million jobs are computed from that: what an agent asks for does not grow with the fleet. What the roster's
author asks for does: it reads all heartbeats, and a listing is one request for each thousand keys. In a larger fleet
each agent hears the bell more seldom (`compute_listen_pause`). What jobs upload is not here: the runner is a double.
What a job costs depends on the jobs that are left for each agent: where few are, several agents want the same ones. So
the hour is lived for three such numbers, of which the first is that of a million jobs.
Ratio: dollars of a thousand agents in a day over the bar, 25. With the argument 300 agents have such a lease; bar 12.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the simulation is part of the tests

from _common import report

from monkey.protocol.sweeps.queue_markers import mark_queue
from monkey.protocol.sweeps.sweep_log import append_revision
from monkey.protocol.wakeup import compute_listen_pause
from monkey.spec.job.lease_length import LEASE
from monkey.spec.job.recipe import SweepSettings
from monkey.store.store_port import ListedObject
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.scheduling.agent_identity import AgentIdentity
from tests.signing import SIGNERS
from tests.simulation.body import KEYS, Body
from tests.simulation.machine_slots import Slots
from tests.simulation.net import Host, Net
from tests.simulation.story import revision
from tests.simulation.world import Weather, World

AGENTS, HOUR, DAY, TEN_MINUTES = 50, 3600.0, 86_400.0, 600.0
#: The fleet that is asked for, and its jobs.
FLEET, JOBS = 1_000, 1_000_000
#: Dollars a request, of Amazon's S3 (standard, us-east-1), and keys on one page of a listing.
PRICES, PAGE = {"PUT": 5e-6, "LIST": 5e-6, "GET": 4e-7}, 1_000
PURPOSES = {"agents": "who lives", "jobs": "job's log", "sweeps": "sweep's log", "stops": "sweep's log"}
#: What the requests of the roster's author are for, beside those that each agent makes.
AUTHOR = "author's "
#: Jobs that are left for each agent: as a million jobs begin, as their last tenth does, and near their end.
LEFT = (JOBS // FLEET, 100, 12)
#: Number of the first job: those below are the simulation's own.
FIRST = 1_000
#: Seconds between looks at a bucket, as `BucketStore.poll` has it.
POLL = 10.0
#: Seconds of the agents' lease, and the bar: dollars a day for what they ask for.
ASKED_LEASE = float(sys.argv[1]) if sys.argv[1:] else LEASE
BAR = 25.0 if ASKED_LEASE == LEASE else 12.0
WEATHER = Weather(
    0.0, AGENTS, (0, 0), orders=False, crashes=False, pauses=False, calm_from=0.001, jobs=(TEN_MINUTES, TEN_MINUTES),
    flaky=False, expires=False, pilots=False,
)  # fmt: skip


class RequestCounter:
    """The requests of a fleet, by kind and by what they are for."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()
        self.writes: defaultdict[str, Counter[int]] = defaultdict(Counter)

    def note(self, kind: str, key: str, at: float, *, leads: bool = False) -> None:
        """Count one request; `leads`: of the roster's author."""
        purpose = name_purpose(key)
        shared = leads and (kind, purpose) in (("LIST", "who lives"), ("GET", "heartbeat"), ("PUT", "roster"))
        self.requests[kind, AUTHOR * shared + purpose] += 1
        if kind == "PUT":
            self.writes[key][int(at)] += 1

    @property
    def busiest(self) -> tuple[int, str]:
        """Return the most writes of a key in one second, and the key."""
        return max((max(of.values()), key) for key, of in self.writes.items())


class CountedNet(Net):
    """A store as one agent sees it, each request counted."""

    def __init__(self, world: World, host: Host, counter: RequestCounter) -> None:
        super().__init__(world, host)
        self.poll, self._counter = POLL, counter
        self.leads: Callable[[], bool] = bool

    def _note(self, kind: str, key: str) -> None:
        self._counter.note(kind, key, self.world.loop.time(), leads=self.leads())

    async def create(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        self._note("PUT", key)
        return await super().create(key, data, durable=durable)

    async def put(self, key: str, data: bytes) -> None:
        self._note("PUT", key)
        await super().put(key, data)

    async def get(self, key: str) -> bytes:
        self._note("GET", key)
        return await super().get(key)

    async def list(self, prefix: str, after: str = "") -> list[ListedObject]:
        self._note("LIST", prefix)
        return await super().list(prefix, after)


def name_purpose(key: str) -> str:
    """Return what a request of this key is for."""
    place = key.removeprefix(KEYS.root).split("/")[0]
    if place == "agents" and key != KEYS.agents:
        return "heartbeat" if key.endswith("/beat") else "journal"
    return PURPOSES.get(place, place)


def run_fleet(left: int) -> RequestCounter:
    """Let the fleet work for an hour, after ten minutes in which it begins; return what the hour took.

    `left`: jobs of the sweep that are left for each agent.
    """
    world, counter = World(1, WEATHER), RequestCounter()
    asyncio.set_event_loop(world.loop)

    async def live() -> None:
        people = Net(world, Host(world, "people"), kind=True)
        jobs = range(FIRST, FIRST + AGENTS * left)
        await append_revision(people, KEYS, SIGNERS, revision("a", jobs, SweepSettings(providers=["f"])), 0)
        await mark_queue(people, KEYS, ["f"], "a", 1)
        for n in range(AGENTS):
            host = Host(world, f"h{n}")
            world.hosts.append(host)
            identity, body = (
                AgentIdentity("p", "f", host.name, "b", idle_timeout=None, lease=ASKED_LEASE),
                Body(world, host),
            )
            net = CountedNet(world, host, counter)
            agent = AgentDaemon(net, identity, SIGNERS, host, body, Slots(1), random.Random(n))
            agent.observer.crowd = AGENTS // 2
            net.leads = partial(getattr, agent.observer, "leads")
            world.loop.create_task(agent.run())
            await asyncio.sleep(TEN_MINUTES / AGENTS)
        counter.requests.clear()
        counter.writes.clear()
        await asyncio.sleep(HOUR)

    world.run(live())
    assert not world.violations, world.violations
    return counter


def price_fleet(counter: RequestCounter) -> tuple[dict[tuple[str, str], float], dict[str, float]]:
    """Return the requests of one agent in a day by kind and purpose, and those of one job by kind."""
    done = AGENTS * HOUR / TEN_MINUTES
    jobs = {kind: count / done for (kind, purpose), count in counter.requests.items() if purpose == "job's log"}
    days = HOUR / DAY * AGENTS
    agents = {of: count / days for of, count in sorted(counter.requests.items()) if of[1] != "job's log"}
    return agents, jobs


def sum_dollars(agents: Mapping[tuple[str, str], float]) -> float:
    """Return what a day of the whole fleet costs, with all pages of its listings and its longer pauses."""
    pages, one = 1 + FLEET // PAGE, AGENTS / FLEET
    scale = {
        "who lives": pages,
        "bell": compute_listen_pause(AGENTS) / compute_listen_pause(FLEET),
        f"{AUTHOR}who lives": pages * one,
        f"{AUTHOR}roster": one,
    }
    return FLEET * sum(PRICES[kind] * count * scale.get(purpose, 1) for (kind, purpose), count in agents.items())


def main() -> None:
    """Measure and report."""
    counters = {left: run_fleet(left) for left in LEFT}
    counter = counters[LEFT[0]]
    agents, jobs = price_fleet(counter)
    print(f"  {AGENTS} agents for an hour on jobs of ten minutes; below, {FLEET:,} agents and {JOBS:,} jobs")
    for (kind, purpose), count in agents.items():
        dollars = sum_dollars({(kind, purpose): count})
        print(f"  {kind:5}{purpose:19}{count:9,.0f} an agent and day  ${dollars:7.2f} a day")
    of_jobs = JOBS * sum(PRICES[kind] * count for kind, count in jobs.items())
    for left, each in counters.items():
        told = ", ".join(f"{count:.3f} {kind}" for kind, count in sorted(price_fleet(each)[1].items()))
        print(f"  a job's log, where {left:,} jobs are left for each agent: {told}")
    print(f"  without what the jobs upload: ${of_jobs:.2f} for {JOBS:,}")
    most, key = counter.busiest
    print(f"  writes of one key in a second: at most {most} ({key})")
    day = sum_dollars(agents)
    floor = {"a beat in 30 s alone": FLEET * DAY / 30 * PRICES["PUT"]}
    more = {"dollars_of_jobs": round(of_jobs, 2), "writes_of_a_key_in_a_second": most}
    report("scale", "dollars a day", day, floor, day / BAR, **more)


if __name__ == "__main__":
    main()
