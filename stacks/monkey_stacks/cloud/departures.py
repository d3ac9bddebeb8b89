"""Machines that are about to end themselves: their agents have left, and said so. Nobody should count on them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from monkey.protocol.status.store_snapshot import AgentView, SnapshotReader
from monkey_stacks.cloud.scaling import MachineGroup

#: Seconds that a machine whose agent has left is given to go by itself, and between looks at whether it is gone.
GRACE, _POLL_SECONDS = 10.0, 1.0


async def find_departed(reader: SnapshotReader, fleet: str) -> frozenset[str]:
    """Return the machines whose agents have left, by the names that these gave themselves. Raises StoreError.

    One that left, found work that had just come and began again is none of them.
    """
    newest: dict[str, AgentView] = {}
    for agent in (await reader.read([])).agents:
        name = agent.id.split("/")[1]
        if agent.fleet == fleet and (name not in newest or newest[name].at <= agent.at):
            newest[name] = agent
    return frozenset(name for name, agent in newest.items() if agent.left)


async def seen_off(
    reader: SnapshotReader, fleet: str, look: Callable[[], MachineGroup | None], grace: float = GRACE
) -> tuple[MachineGroup | None, frozenset[str]]:
    """Return a group once none of its machines is about to end itself, and which of them still were after `grace` s.

    `look` returns it as it is. Raises FleetError, StoreError.
    """
    until = time.monotonic() + grace
    while (there := await asyncio.to_thread(look)) is not None and there.members:
        going = there.ids & await find_departed(reader, fleet)
        if not going or time.monotonic() > until:
            return there, going
        await asyncio.sleep(_POLL_SECONDS)
    return there, frozenset()
