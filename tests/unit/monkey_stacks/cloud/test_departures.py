"""Machines whose agents have left: who is counted on, and who is waited for."""

from __future__ import annotations

from monkey.protocol.clock import MachineClock
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.layout import Keys
from monkey.protocol.status.store_snapshot import SnapshotReader
from monkey.store.memory import MemoryStore
from monkey_stacks.cloud.departures import find_departed, wait_for_departures
from monkey_stacks.cloud.scaling import GroupMember, MachineGroup
from tests.loops import Run
from tests.signing import SIGNERS

KEYS = Keys("shop")


def group(*ids: str) -> MachineGroup:
    """Return a group of these machines."""
    return MachineGroup(len(ids), tuple(GroupMember(id_, "large", "now") for id_ in ids))


def test_who_has_left_is_waited_for_and_who_came_back_is_not(run: Run) -> None:
    store = MemoryStore()
    reader = SnapshotReader(store, KEYS, SIGNERS)

    async def beat(agent: str, *, left: bool) -> None:
        await HeartbeatWriter(store, KEYS.beat(agent), MachineClock()).beat(left=left)

    async def main() -> None:
        await beat("cloud/i-1/a", left=True)
        await beat("cloud/i-2/a", left=True)
        await beat("cloud/i-2/b", left=False)  # it found work as it left
        await beat("cloud/i-3/a", left=True)
        await beat("other/i-4/a", left=True)
        assert await find_departed(reader, "cloud") == {"i-1", "i-3"}
        assert await wait_for_departures(reader, "cloud", lambda: None) == (None, frozenset())
        both = group("i-1", "i-2", "i-5")
        assert await wait_for_departures(reader, "cloud", lambda: both, grace=0) == (both, {"i-1"})
        looks = [group("i-2", "i-3"), group("i-2")]
        there, going = await wait_for_departures(reader, "cloud", lambda: looks.pop(0), grace=60)
        assert there == group("i-2") and not going and not looks, "it went by itself"

    run(main())
