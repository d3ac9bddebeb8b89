"""Notes of machines that gave up: read whatever is in them, told in few lines, and taken away."""

from __future__ import annotations

import json
import time
from itertools import count

import pytest

from monkey.errors import FleetError
from monkey.fleet import boot_failures
from monkey.protocol.layout import Keys
from monkey.store.memory import MemoryState, MemoryStore
from monkey_stacks.boot.remote import boot_report
from tests.loops import Run


def test_notes_are_read_told_and_taken_away(run: Run) -> None:
    store, keys = MemoryStore(MemoryState(), "memory://boots"), Keys("p")

    class Cloud:
        seen = ("a-secret",)

        def name(self) -> str:
            return "i-1"

        def put(self, key: str, data: bytes) -> None:
            run(store.put(key, data))

    boot_report.note_end(Cloud(), {"project": "p", "fleet": "rented"}, "a-secret is wrong")
    said = {"machine": "i-2", "why": "*** is wrong", "at": 1.0, "log": []}
    run(store.put(f"{keys.boots}rented/i-2", json.dumps(said).encode()))
    run(store.put(f"{keys.boots}rented/i-3", b"[]"))
    run(store.put(f"{keys.boots}other/i-4", json.dumps({**said, "why": "why not"}).encode()))
    found = run(boot_failures.read_boot_failures(store, keys.boots))
    assert [boot.machine for boot in found] == ["i-4", "i-2", "i-1"]
    assert boot_failures.format_boot_failures(found) == [
        "other: a machine gave up: why not",
        "rented: 2 machines gave up: *** is wrong",
    ]
    with pytest.raises(FleetError, match=r"'rented' gave up: \*\*\* is wrong"):
        run(boot_failures.check_boot_failures(store, keys.boots, "rented"))
    run(boot_failures.forget_boot_failures(store, keys.boots, "rented"))
    run(boot_failures.check_boot_failures(store, keys.boots, "rented"))
    assert [boot.fleet for boot in run(boot_failures.read_boot_failures(store, keys.boots))] == ["other"]


def test_of_many_machines_that_gave_up_the_newest_are_told(run: Run) -> None:
    store, keys = MemoryStore(MemoryState(), "memory://boots"), Keys("p")

    class Cloud:
        seen = ()

        def __init__(self, name: str) -> None:
            self.name = lambda: name

        def put(self, key: str, data: bytes) -> None:
            run(store.put(key, data))

    clock = count(1_700_000_000.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: next(clock))
        for n in range(25):
            name = f"i-{99 - n}"
            boot_report.note_end(Cloud(name), {"project": "p", "fleet": "rented"}, f"{name} is wrong")
    found = run(boot_failures.read_boot_failures(store, keys.boots))
    assert [boot.machine for boot in found] == [f"i-{99 - n}" for n in range(5, 25)]
    with pytest.raises(FleetError, match="i-75 is wrong"):
        run(boot_failures.check_boot_failures(store, keys.boots, "rented"))
