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


def left_at(outage: tuple[float, float]) -> tuple[float, bool]:
    """Return when an agent without work has left, on a store that is away for so long, and whether it gave up."""
    world = World(1, Weather(outage=outage, **QUIET))
    asyncio.set_event_loop(world.loop)
    host = Host(world, "h")
    identity = AgentIdentity("p", "f", "h", "b", idle_timeout=10)
    agent = AgentDaemon(Net(world, host), identity, SIGNERS, host, Body(world, host), Slots(1), random.Random(1))
    world.run(asyncio.wait_for(agent.run(), 5_000))
    return world.loop.time(), agent.gave_up


def test_an_agent_without_work_leaves() -> None:
    when, gave_up = left_at((0, 0))
    assert 10 < when < 60 and not gave_up


def test_an_agent_whose_store_never_comes_back_leaves_too() -> None:
    when, gave_up = left_at((5, float("inf")))
    assert 70 < when < 400 and gave_up


def test_an_agent_that_never_met_its_store_gives_up() -> None:
    when, gave_up = left_at((0, float("inf")))
    assert 60 < when < 200 and gave_up
