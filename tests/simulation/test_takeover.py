"""How long a job waits for another agent after its own died, on virtual time, in a bucket: at most 110 seconds."""

from __future__ import annotations

import asyncio
import random

import pytest

from monkey.apply.watch.watch_loop import WATCHER_BEAT
from monkey.protocol.entries import Claim
from monkey.protocol.sweeps.queue_markers import mark_queue
from monkey.protocol.sweeps.sweep_log import append_revision
from monkey.spec.job.recipe import SweepSettings
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.scheduling.agent_identity import AgentIdentity
from monkey_agent.scheduling.claiming import LOG_READERS
from tests.signing import SIGNERS
from tests.simulation.body import KEYS, Body
from tests.simulation.machine_slots import Slots
from tests.simulation.net import Host, Net
from tests.simulation.story import revision
from tests.simulation.test_protocol import QUIET
from tests.simulation.world import Weather, World

#: Seconds between looks at a bucket, as `BucketStore.poll` has it; and until a job of a dead agent is another's.
POLL, PROMISE = 10.0, 110.0
#: Seconds until all agents know each other, and between two deaths.
SETTLED, APART = 150.0, 7.0


class CountedNet(Net):
    """A store as one agent sees it, which counts how often logs of jobs are read."""

    async def get(self, key: str) -> bytes:
        self.counts["reading of a job's log"] += key.startswith(KEYS.jobs)
        return await super().get(key)


class SimulatedFleet:
    """Agents with one slot each; `spare` of them, or one of a hundred, have no job, and wait for those of others."""

    def __init__(self, count: int, seed: int, spare: int = 0) -> None:
        self.world = World(seed, Weather(**{**QUIET, "jobs": (5_000, 6_000)}, outage=(0, 0), calm_from=0.001))
        self.world.poll, self.count, self.random = POLL, count, random.Random(seed)
        self.spare = spare or max(1, count // 100)
        self.agents: list[tuple[AgentDaemon, Body, asyncio.Task[None]]] = []

    async def begin(self) -> None:
        """Give each agent but a few a job, and let all learn of all."""
        people = Net(self.world, Host(self.world, "people"), kind=True)
        jobs, settings = range(1000, 1000 + self.count - self.spare), SweepSettings(providers=["f"])
        await append_revision(people, KEYS, SIGNERS, revision("a", jobs, settings), 0)
        await mark_queue(people, KEYS, ["f"], "a", 1)
        for n in range(self.count):
            host = Host(self.world, f"h{n:04}")
            self.world.hosts.append(host)
            body, identity = Body(self.world, host), AgentIdentity("p", "f", host.name, "b", idle_timeout=None)
            rng = random.Random(n)
            agent = AgentDaemon(CountedNet(self.world, host), identity, SIGNERS, host, body, Slots(1), rng)
            self.agents.append((agent, body, self.world.loop.create_task(agent.run())))
            await asyncio.sleep(20 / self.count)
        await asyncio.sleep(SETTLED + self.random.uniform(0, 30))

    async def kill_one(self, *, author: bool) -> float:
        """Kill an agent at work, as `kill -9` does; return the seconds until another has its job."""
        at_work = [one for one in self.agents if one[0].attempts.in_hand and not one[2].cancelled()]
        leading = [one for one in at_work if one[0].observer.leads]
        agent, body, main = self.random.choice(leading if author and leading else at_work)
        log, died = KEYS.job_log(next(iter(agent.attempts.in_hand))), self.world.loop.time()
        for task in (*agent._tasks, main):
            task.cancel()
        body.kill()
        while isinstance(tail := self.world.log(log).tail, Claim) and tail.agent == agent.identity.agent:
            await agent.clock.sleep(0.1)
        return self.world.loop.time() - died


def measure_takeovers(count: int, seed: int = 1, spare: int = 0, deaths: int = 0, apart: float = APART) -> list[float]:
    """Return the seconds of takeovers in a fleet of `count` agents; the first to die is the roster's author.

    `deaths`: those that die; by itself as many as there are spare ones. `apart`: seconds between two deaths.
    """
    fleet, taken = SimulatedFleet(count, seed, spare), list[float]()
    asyncio.set_event_loop(fleet.world.loop)

    async def live() -> None:
        await fleet.begin()
        killed = []
        for n in range(deaths or fleet.spare):
            killed.append(asyncio.ensure_future(fleet.kill_one(author=n == 0)))
            await asyncio.sleep(apart)
        taken.extend(await asyncio.gather(*killed))

    fleet.world.run(live())
    assert not fleet.world.violations, fleet.world.violations
    return taken


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "seeds", "deaths", "apart"),
    [(2, 12, 1, APART), (10, 6, 1, APART), (60, 3, 1, APART), (60, 2, 30, APART), (60, 2, 30, 0), (200, 1, 2, APART)],
)
def test_job_of_a_dead_agent_is_taken_over_in_time(count: int, seeds: int, deaths: int, apart: float) -> None:
    """One agent has no job for each that dies. Where half of the fleet dies, the rest shares no roster any more."""
    taken = [took for seed in range(seeds) for took in measure_takeovers(count, seed, deaths, deaths, apart)]
    assert len(taken) == seeds * deaths and max(taken) <= PROMISE, taken


@pytest.mark.slow
def test_idle_agents_share_the_reading_of_logs_of_jobs_at_work() -> None:
    fleet, seconds = SimulatedFleet(60, 1, spare=30), 300.0
    asyncio.set_event_loop(fleet.world.loop)
    counts = fleet.world.counts

    async def live() -> None:
        await fleet.begin()
        counts.clear()
        await asyncio.sleep(seconds)

    fleet.world.run(live())
    looks, jobs = seconds / POLL, 30
    # Each of the 30 agents would read each of the 30 logs: 900 at a look.
    assert 2 * jobs <= counts["reading of a job's log"] / looks <= 1.5 * LOG_READERS * jobs, counts


async def watch(world: World) -> None:
    """Do what a user's `status -w` does to agents."""
    net = Net(world, Host(world, "user"), kind=True)
    while True:
        await net.put(KEYS.watcher("user"), str(world.loop.time()).encode())
        await net.put(KEYS.bell, str(world.loop.time()).encode())
        await asyncio.sleep(WATCHER_BEAT)


def count_beats(count: int, seconds: float, *, watched: bool = False) -> list[int]:
    """Return how often each agent of a fleet beat in so many seconds; none of their jobs was frozen."""
    fleet = SimulatedFleet(count, 1)
    asyncio.set_event_loop(fleet.world.loop)
    beats = list[int]()

    async def live() -> None:
        await fleet.begin()
        if watched:
            fleet.world.loop.create_task(watch(fleet.world))
            await asyncio.sleep(30)
        before = [agent.heart.newest[0] for agent, _, _ in fleet.agents]
        await asyncio.sleep(seconds)
        beats.extend(agent.heart.newest[0] - was for (agent, _, _), was in zip(fleet.agents, before, strict=True))

    fleet.world.run(live())
    assert not fleet.world.violations and not fleet.world.counts["freeze"]
    return beats


@pytest.mark.slow
@pytest.mark.parametrize(("count", "fewest", "most"), [(10, 20, 26), (60, 10, 12)])
def test_agents_of_a_large_fleet_beat_half_as_often(count: int, fewest: int, most: int) -> None:
    beats = count_beats(count, 300)
    assert len(beats) == count and fewest <= min(beats) and max(beats) <= most, beats


@pytest.mark.slow
@pytest.mark.parametrize(("count", "fewest", "most"), [(10, 50, 61), (100, 22, 31)])
def test_agents_of_a_large_fleet_beat_more_seldom_while_a_user_watches(count: int, fewest: int, most: int) -> None:
    beats = count_beats(count, 60, watched=True)
    assert len(beats) == count and fewest <= min(beats) and max(beats) <= most, beats
