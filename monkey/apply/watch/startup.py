"""Whether agents start, for `apply --detach`, which does not watch them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection

from monkey.apply.fleet_work import list_unfinished_sweeps, sum_unfinished_work
from monkey.fleet.fleet_port import Fleet, Rented, keep_silent
from monkey.protocol.status.store_snapshot import SnapshotReader

#: Seconds that are waited for the first heartbeat of an agent that is not going to be watched.
BEGUN_WITHIN = 15.0
#: Seconds between looks for it.
_POLL_SECONDS = 0.05


async def wait_for_agents(reader: SnapshotReader, fleets: Collection[Fleet]) -> None:
    """Wait until every fleet has an agent that beats: without a watcher, one that failed to start would go unseen.

    One whose agents left while their work was on its way is converged again. Raises FleetError where one could not
    begin. Gives up waiting, not hoping, after BEGUN_WITHIN seconds; what boots for minutes is not waited for.
    """
    for fleet in fleets:
        if await _begins(reader, fleet):
            continue
        work = sum_unfinished_work(list_unfinished_sweeps(await reader.read(), fleet.name))
        if work.jobs:
            await fleet.converge(work, keep_silent)
            await _begins(reader, fleet)


async def _begins(reader: SnapshotReader, fleet: Fleet) -> bool:
    """Wait for an agent of the fleet; says whether one is there, or may be on its way."""
    until = time.monotonic() + BEGUN_WITHIN
    while await fleet.has_workers():
        booting = isinstance(fleet, Rented) and fleet.booting
        if booting or time.monotonic() > until or (await reader.read([])).alive(fleet.name):
            return True
        await asyncio.sleep(_POLL_SECONDS)
    return False
