"""Machines that are about to end themselves: their agents have left, by their heartbeats. They get no more work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from monkey.protocol.status.store_snapshot import AgentView, SnapshotReader
from monkey_stacks.cloud.scaling import MachineGroup

#: Seconds in which a machine whose agent has left may end itself, and between looks at whether it has.
GRACE, _POLL_SECONDS = 10.0, 1.0


async def find_departed(reader: SnapshotReader, fleet: str) -> frozenset[str]:
    """Return the machines whose agents have left, by their names in heartbeats. Raises StoreError.

    A machine whose agent left, and began again for new work, is not among them.
    """
    newest: dict[str, AgentView] = {}
    for agent in (await reader.read([])).agents:
        name = agent.id.split("/")[1]
        if agent.fleet == fleet and (name not in newest or newest[name].at <= agent.at):
            newest[name] = agent
    return frozenset(name for name, agent in newest.items() if agent.left)


async def wait_for_departures(
    reader: SnapshotReader, fleet: str, look: Callable[[], MachineGroup | None], grace: float = GRACE
) -> tuple[MachineGroup | None, frozenset[str]]:
    """Wait until no machine of a group is about to end itself, for at most `grace` seconds.

    Returns the group, and the machines that still are about to. `look` reads the group. Raises FleetError, StoreError.
    """
    until = time.monotonic() + grace
    while (there := await asyncio.to_thread(look)) is not None and there.members:
        going = there.ids & await find_departed(reader, fleet)
        if not going or time.monotonic() > until:
            return there, going
        await asyncio.sleep(_POLL_SECONDS)
    return there, frozenset()


async def wait_for_end(
    reader: SnapshotReader, fleet: str, there: MachineGroup, look: Callable[[], MachineGroup | None]
) -> bool:
    """Wait until the machines of a group have ended whose agents all left; return False at once where one did not.

    Those that give up leave a note of why as they end. Another machine is not to be called before it can be read.
    Raises FleetError, StoreError.
    """
    if not there.ids <= await find_departed(reader, fleet):
        return False
    await wait_for_departures(reader, fleet, look)
    return True
