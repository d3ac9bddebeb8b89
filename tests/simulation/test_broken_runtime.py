"""A runtime that answers and starts no container: jobs are released, not failed, and not claimed in a circle."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from monkey.errors import MachineFault
from monkey.protocol.entries import Claim, ClaimEnd, EndEntry
from monkey.spec.job.recipe import JobResources, SweepSettings
from monkey_agent.containers.runtime_faults import RuntimeFaults, StartedKind
from monkey_agent.ports import Attempt, AttemptEnd, AttemptOutcome
from tests.simulation.body import KEYS, Execution, job_id
from tests.simulation.life import Life
from tests.simulation.mutant import Mutant
from tests.simulation.net import Host
from tests.simulation.story import Story, revision
from tests.simulation.test_faults_alone import JOBS, ends
from tests.simulation.test_protocol import QUIET
from tests.simulation.world import Weather, World

KIND = StartedKind("sha256:a", JobResources())
SLOTS = 2
#: When jobs of a broken runtime are tried, where it is never mended: after 1, 2, 4, 8 and 16 minutes.
ROUNDS = 6


class UnstartedExecution(Execution):
    """An attempt whose container is not started."""

    faults: RuntimeFaults

    def _run(self) -> None:
        self.left = 0.3
        super()._run()

    def _finish(self) -> None:
        self.faults.note(KIND, "podman could not start the container")
        self.end(AttemptOutcome(AttemptEnd.STOPPED, "podman could not start the container"))


class BrokenRuntime:
    """The runtime of a machine, until it is mended; as `JobNeeds` and `JobContainer` ask and note."""

    def __init__(self, life: Life, mended_at: float) -> None:
        self.faults, self.body, self.mended_at = RuntimeFaults(life.host.now), life.body, mended_at
        life.body.make, life.body._preparation = self.make, self.prepare
        dispatcher = life.agent.dispatcher
        dispatcher.find_lack = lambda _: self.faults.find_lack(KIND)
        dispatcher.find_rest = lambda _: self.faults.find_rest(KIND)

    def prepare(self) -> float:
        if why := self.faults.find_rest(KIND) or self.faults.find_lack(KIND):
            raise MachineFault(why)
        return 0.1

    def make(self, attempt: Attempt) -> Execution:
        if self.body.world.loop.time() >= self.mended_at:
            return Execution(self.body, attempt)
        execution = UnstartedExecution(self.body, attempt)
        execution.faults = self.faults
        return execution


def live(mended_at: float, seconds: float, idle_timeout: float | None = None) -> tuple[World, float]:
    """Let an agent work for so long, or until it leaves; return when it left."""
    world = World(1, Weather(**{**QUIET, "jobs": (20, 60)}, agents=1, outage=(0, 0), calm_from=0.001))
    asyncio.set_event_loop(world.loop)
    left = [seconds]

    async def run() -> None:
        await Story(world).apply(revision("a", JOBS, SweepSettings(providers=["f"], max_retries=0)))
        world.hosts.append(Host(world, "h0"))
        life = world.current["h0"] = Life(world, world.hosts[0], Mutant())
        life.agent.identity = replace(life.agent.identity, idle_timeout=idle_timeout)
        life.slots.count = life.slots.left = SLOTS
        BrokenRuntime(life, mended_at)
        await asyncio.wait([life.main], timeout=seconds)
        left[0] = world.loop.time()
        assert life.agent._failure is None
        life.agent.stop()
        await asyncio.wait([life.main], timeout=300)
        assert life.main.done()

    world.run(run())
    assert not world.violations
    return world, left[0]


def count_claims(world: World) -> int:
    """Return how often jobs were claimed."""
    return sum(isinstance(entry, Claim) for n in JOBS for entry in world.log(KEYS.job_log(job_id(n))).entries)


def test_jobs_are_tried_less_and_less_often_and_none_fails() -> None:
    world, _ = live(float("inf"), 1900)
    assert set(ends(world).values()) == {ClaimEnd.RELEASED}
    # One more in each round: it was claimed before the first of the round had failed.
    assert 3 <= count_claims(world) <= ROUNDS * (SLOTS + 1)
    reasons = {
        entry.reason
        for n in JOBS
        for entry in world.log(KEYS.job_log(job_id(n))).entries
        if isinstance(entry, EndEntry)
    }
    assert all("could not start the container" in reason for reason in reasons), reasons


@pytest.mark.parametrize("idle_timeout", [10, None])
def test_a_runtime_that_is_mended_within_a_minute_loses_no_agent_and_no_job(idle_timeout: float | None) -> None:
    world, left = live(30, 600, idle_timeout)
    assert set(ends(world).values()) == {ClaimEnd.SUCCEEDED} and len(ends(world)) == len(JOBS)
    assert count_claims(world) <= len(JOBS) + SLOTS + 1
    assert idle_timeout is None or 60 < left < 500


def test_an_agent_that_failed_twice_leaves_as_one_without_a_runtime_does_and_says_why() -> None:
    world, left = live(float("inf"), 600, idle_timeout=10)
    assert 60 < left < 200, "a minute, a second try, and its patience"
    [beat] = [json.loads(data) for key, (data, _) in world.state.objects.items() if key.endswith("/beat")]
    assert beat["left"] and "a: its image cannot be run: podman could not start" in json.dumps(beat)
    assert '"unfit": ["a"]' in json.dumps(beat)
