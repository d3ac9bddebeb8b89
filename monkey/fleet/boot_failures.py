"""Machines that were rented and gave up: each leaves a note in the store of why, and ends itself."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from monkey.errors import CorruptObject, FleetError, KeyMissing
from monkey.store.store_port import Store

#: Notes that are read of a fleet at most, the newest: their names begin with the second in which they were written.
_MOST = 20
#: How the note of a machine begins whose agent had been heard, and then was not for long. Its boot text has no room for
#: more words: user data is short.
CUT_OFF = "the store has acknowledged no heartbeat for"


@dataclass(frozen=True)
class BootFailure:
    """What a machine left that could not boot, or whose agent was not heard for long."""

    fleet: str
    machine: str
    why: str
    #: Seconds since 1970, by the machine's clock.
    at: float
    #: The last lines of its logs.
    log: tuple[str, ...] = ()

    @property
    def lasting(self) -> bool:
        """Would another machine end the same, as things are? One that was cut off could begin; others could not."""
        return not self.why.startswith(CUT_OFF)


async def read_boot_failures(store: Store, prefix: str) -> list[BootFailure]:
    """Return what is noted below `prefix`, by fleets, the newest last. Raises StoreError."""
    fleets: dict[str, list[str]] = defaultdict(list)
    for item in await store.list(prefix):
        fleets[item.key.removeprefix(prefix).partition("/")[0]].append(item.key)
    found = [await _read(store, prefix, key) for keys in fleets.values() for key in keys[-_MOST:]]
    return sorted(filter(None, found), key=lambda boot: (boot.fleet, boot.at))


async def _read(store: Store, prefix: str, key: str) -> BootFailure | None:
    fleet, _, name = key.removeprefix(prefix).partition("/")
    machine = name.partition("-")[2] if name[:1].isdigit() else name
    try:
        said = json.loads(await store.get(key))
        return BootFailure(fleet, machine, str(said["why"]), float(said["at"]), tuple(map(str, said["log"])))
    except (KeyMissing, CorruptObject, ValueError, TypeError, LookupError):  # taken away, or not a machine's
        return None


async def forget_boot_failures(store: Store, prefix: str, fleet: str) -> None:
    """Take a fleet's notes away: it is set up again. Raises StoreError."""
    for item in await store.list(f"{prefix}{fleet}/"):
        await store.delete(item.key)


async def check_boot_failures(store: Store, prefix: str, fleet: str) -> None:
    """Raise FleetError where machines of the fleet gave up: more of them would, too. Raises StoreError."""
    if found := [boot for boot in await read_boot_failures(store, prefix) if boot.fleet == fleet]:
        raise FleetError(
            f"the machines of provider {fleet!r} gave up: {found[-1].why}",
            hint="`monkey status --json` has their last words; mend it, and apply again",
        )


def format_boot_failures(boots: Sequence[BootFailure]) -> list[str]:
    """Return a line for each fleet and reason."""
    count: dict[tuple[str, str], int] = defaultdict(int)
    for boot in boots:
        count[boot.fleet, boot.why] += 1
    return [
        f"{fleet}: {f'{many} machines' if many > 1 else 'a machine'} gave up: {why}"
        for (fleet, why), many in count.items()
    ]
