"""Agents of a large fleet want the same jobs: who was outrun reads a job's log before it claims another in vain."""

from __future__ import annotations

import asyncio

import pytest

from tests.simulation.body import KEYS
from tests.simulation.test_takeover import SimulatedFleet

#: Agents, and jobs of half a minute each: in the end, most that an agent meets have ended elsewhere.
AGENTS, JOBS = 60, 400


@pytest.mark.slow
def test_few_claims_are_written_in_vain() -> None:
    fleet, vain = SimulatedFleet(AGENTS, 1), 0
    world, create = fleet.world, fleet.world.create
    world.jobs, fleet.spare = (20, 40), AGENTS - JOBS
    asyncio.set_event_loop(world.loop)

    def counted(key: str, data: bytes) -> bool:
        nonlocal vain
        won = create(key, data)
        vain += not won and key.startswith(KEYS.jobs)
        return won

    async def live() -> None:
        await fleet.begin()
        while sum(world.executions.values()) < JOBS:
            await asyncio.wait([asyncio.ensure_future(asyncio.sleep(5))])

    world.create = counted  # type: ignore[method-assign]  # the store's own answers are counted
    world.run(live())
    assert not world.violations and sum(world.executions.values()) == JOBS
    assert vain < JOBS, "each job's claim costs less than one more on average"
