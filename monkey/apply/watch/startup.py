"""Whether agents start, for `apply --detach`, which does not watch them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection

from monkey.apply.fleet_work import sum_unfinished_work
from monkey.fleet.fleet_port import Fleet, ImageCheckable, Rented, keep_silent
from monkey.protocol.status.store_snapshot import AgentView, SnapshotReader

#: Seconds that are waited for the first heartbeat of an agent that is not going to be watched.
BEGUN_WITHIN = 15.0
#: Seconds between looks for it.
_POLL_SECONDS = 0.05


async def wait_for_agents(reader: SnapshotReader, fleets: Collection[Fleet]) -> None:
    """Wait until every fleet has an agent that beats, of each image that has work, as no watcher sees one that fails.

    One whose agents left while their work was on its way is converged again. Raises FleetError where one could not
    begin. Gives up waiting, not hoping, after BEGUN_WITHIN seconds; what boots for minutes is not waited for.
    """
    for fleet in fleets:
        if not await _begins(reader, fleet) and await start_again(reader, fleet):
            await _begins(reader, fleet)


async def start_again(reader: SnapshotReader, fleet: Fleet) -> bool:
    """Converge a fleet whose agents left; say whether there is anything to do for it. Raises FleetError, StoreError."""
    work = sum_unfinished_work(await reader.read(), fleet.name)
    if work.jobs:
        await fleet.converge(work, keep_silent)
    return bool(work.jobs)


async def _begins(reader: SnapshotReader, fleet: Fleet) -> bool:
    """Wait for an agent of the fleet; says whether one is there, or may be on its way."""
    until = time.monotonic() + BEGUN_WITHIN
    while await fleet.has_workers():
        booting = isinstance(fleet, Rented) and fleet.booting
        if booting or time.monotonic() > until or await _has_agents(fleet, (await reader.read([])).alive(fleet.name)):
            return True
        await asyncio.sleep(_POLL_SECONDS)
    return False


async def _has_agents(fleet: Fleet, alive: Collection[AgentView]) -> bool:
    """Say whether these agents leave no image without one. Raises FleetError where the agents of one never come."""
    if isinstance(fleet, ImageCheckable):
        return await fleet.check_images({str(agent.vitals.get("own_image") or "") for agent in alive})
    return bool(alive)
