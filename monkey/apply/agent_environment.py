"""Agents that would run jobs otherwise than one that we start: in another environment, with other settings."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from monkey.apply.world.world import World
from monkey.fleet.fleet_port import keep_silent
from monkey.fleet.fleet_records import FleetWork, OutdatedAgent
from monkey.fleet.local_fleet import LocalFleet
from monkey.plan.change import Plan

#: Seconds within which a heartbeat must tell that an agent is idle: it is renewed every second where that is cheap.
IDLE_WITHIN = 1.5
#: Seconds that an idle agent has to leave.
LEAVES_WITHIN = 20.0
#: Seconds between looks.
_LOOK = 0.05
#: Names that a sentence lists before it only counts.
_LISTED = 4


async def renew_idle_agents(world: World, plan: Plan, say: Callable[[str, str], None]) -> None:
    """Replace idle agents whose environment or settings are not ours; say so where one is at work.

    Raises FleetError where an agent cannot be asked to leave, or another cannot be started, and StoreError.
    """
    for part in plan.fleets:
        if part.jobs and world.store is not None:
            fleet = world.fleet(part.fleet)
            if isinstance(fleet, LocalFleet) and (outdated := fleet.outdated_agent()) is not None:
                await _replace_agent(world, fleet, outdated, say)


async def _replace_agent(
    world: World, fleet: LocalFleet, outdated: OutdatedAgent, say: Callable[[str, str], None]
) -> None:
    how = _describe_start(outdated)
    if not await _until(lambda: _idle(world, outdated.agent), IDLE_WITHIN):
        effect = ", and jobs get that" if outdated.differs else "; the next one gets those of monkey.yaml"
        say(fleet.name, f"warning: the agent at work was started {how}{effect}: {_listed(outdated)}")
        return
    await fleet.destroy(keep_silent)
    if not await _until(lambda: _gone(fleet), LEAVES_WITHIN):
        say(fleet.name, f"warning: the agent, started {how} ({_listed(outdated)}), does not leave")
        return
    await fleet.converge(FleetWork(1), keep_silent)
    say(fleet.name, f"agent replaced, since it was started {how}: {_listed(outdated)}")


def _describe_start(outdated: OutdatedAgent) -> str:
    told = ["in another environment"] if outdated.differs else []
    return " and ".join([*told, *(["with other settings"] if outdated.settings else [])])


async def _idle(world: World, agent: str) -> bool:
    agents = (await world.reader().read([])).agents
    return not any(one.claims for one in agents if one.id == agent)


async def _gone(fleet: LocalFleet) -> bool:
    return not fleet.count_agents()


async def _until(true: Callable[[], Awaitable[bool]], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not await true():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(_LOOK)
    return True


def _listed(outdated: OutdatedAgent) -> str:
    names = outdated.settings + outdated.differs
    more = len(names) - _LISTED
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:_LISTED])} and {more} more"
