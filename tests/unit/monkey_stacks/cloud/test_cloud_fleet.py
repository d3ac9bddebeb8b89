"""A rented fleet, as waiting loops ask it whether an agent is on its way."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from monkey.errors import FleetError
from monkey.protocol.clock import MachineClock
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.layout import Keys
from monkey.spec.project.provider import Provider
from monkey.store.memory import MemoryState, MemoryStore
from monkey_stacks.cloud.cloud_fleet import CloudFleet
from monkey_stacks.cloud.scaling import GroupMember, MachineGroup
from tests.loops import Run
from tests.signing import SIGNERS

KEYS = Keys("shop")
ONE, NONE = MachineGroup(1, (GroupMember("i-1", "large", "now"),)), MachineGroup(0)


@pytest.mark.parametrize("gives_up", [False, True])
def test_why_a_machine_gave_up_is_waited_for_before_another_is_called(gives_up: bool, run: Run) -> None:
    store, looks = MemoryStore(MemoryState(), "memory://left"), [ONE, NONE]
    note = {"machine": "i-1", "why": "/data is not mounted", "at": 1.0, "log": []}
    key = f"{KEYS.boots}cloud/i-1"

    def find_group() -> MachineGroup:
        """Return a group whose machine ends itself between two looks."""
        there = looks.pop(0)
        if there is NONE and gives_up:
            asyncio.run(store.put(key, json.dumps(note).encode()))
        return there

    async def main() -> bool:
        await HeartbeatWriter(store, KEYS.beat("cloud/i-1/a"), MachineClock()).beat(left=True)
        api: Any = SimpleNamespace(find_group=find_group)
        fleet = CloudFleet("cloud", Provider("aws"), "shop", lambda: store, api, lambda: SIGNERS)
        return await fleet.has_workers()

    if gives_up:
        with pytest.raises(FleetError, match="gave up: /data is not mounted"):
            run(main())
    else:
        assert not run(main()), "work came as it left for want of it"
    assert not looks
