"""The queue of a fleet: markers of what left work for it, written by people, and hints of agents that nothing is left.

A marker is `queue/<fleet>/<sweep>/<n>`: entry n of the sweep's log left work. A hint is `idle/<fleet>/<sweep>/<n>`. It
decides nothing: an agent that did not see for itself that nothing is left looks at the jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from monkey.protocol.entry_log import Create
from monkey.protocol.layout import Keys, is_name, parse_number
from monkey.protocol.wakeup import wake_agents
from monkey.store.create import create_object
from monkey.store.store_port import Store

#: The end of a hint's name in stores of earlier versions: it lies beside its marker.
_EARLIER_HINT = ".end"


@dataclass(frozen=True)
class FleetQueue:
    """A fleet's queue. Both are sweeps, each with numbers of entries of its log."""

    markers: dict[str, frozenset[int]]
    hints: dict[str, frozenset[int]]

    def find_open(self, sweep: str) -> frozenset[int]:
        """Return the entries of a sweep that left work, as far as no hint says otherwise."""
        return self.markers.get(sweep, frozenset()) - self.hints.get(sweep, frozenset())

    @property
    def sweeps(self) -> list[str]:
        """Return the sweeps that left work, as far as no hint says otherwise."""
        return [sweep for sweep in self.markers if self.find_open(sweep)]


async def mark_queue(store: Store, keys: Keys, fleets: Iterable[str], sweep: str, n: int) -> None:
    """Tell the fleets that entry n of the sweep's log left work for them."""
    for fleet in fleets:
        await create_object(store, keys.marker(fleet, sweep, n), b"{}")
    await wake_agents(store, keys)


async def hint_idle(store: Store, keys: Keys, fleet: str, sweep: str, n: int, create: Create = create_object) -> None:
    """Tell the fleet that nothing of entry n is left."""
    await create(store, keys.idle_hint(fleet, sweep, n), b"{}", durable=False)


async def read_queue(store: Store, keys: Keys, fleet: str) -> FleetQueue:
    """Return the queue of a fleet; names that no sweep has, and numbers that no entry has, are ignored."""
    markers: dict[str, set[int]] = {}
    hints: dict[str, set[int]] = {}
    for prefix, found in ((keys.queue(fleet), markers), (keys.idle_hints(fleet), hints)):
        for item in await store.list(prefix):
            sweep, _, name = item.key.removeprefix(prefix).partition("/")
            n = parse_number(name.removesuffix(_EARLIER_HINT))
            if n is not None and is_name(sweep):
                (hints if name.endswith(_EARLIER_HINT) else found).setdefault(sweep, set()).add(n)
    return FleetQueue(*({sweep: frozenset(numbers) for sweep, numbers in of.items()} for of in (markers, hints)))
