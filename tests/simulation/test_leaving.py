"""An agent leaves when it has nothing to do, and when there is nothing left that could give it something to do."""

from __future__ import annotations

import asyncio
import random

import pytest

from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.scheduling.agent_identity import AgentIdentity
from tests.signing import SIGNERS
from tests.simulation.body import Body, Slots
from tests.simulation.net import Host, Net
from tests.simulation.world import Weather, World

pytestmark = pytest.mark.slow

QUIET = {"fault_rate": 0, "crashes": False, "pauses": False}


def left_at(outage: tuple[float, float]) -> float:
    """Return when an agent without work has left, on a store that is away for so long."""
    world = World(1, Weather(outage=outage, **QUIET))
    asyncio.set_event_loop(world.loop)
    host = Host(world, "h")
    identity = AgentIdentity("p", "f", "h", "b", idle_timeout=10)
    agent = AgentDaemon(Net(world, host), identity, SIGNERS, host, Body(world, host), Slots(1), random.Random(1))
    world.run(asyncio.wait_for(agent.run(), 5_000))
    return world.loop.time()


def test_an_agent_without_work_leaves() -> None:
    assert 10 < left_at((0, 0)) < 60


def test_an_agent_whose_store_never_comes_back_leaves_too() -> None:
    assert 70 < left_at((5, float("inf"))) < 400


def test_an_agent_that_never_met_its_store_gives_up() -> None:
    assert 60 < left_at((0, float("inf"))) < 200
