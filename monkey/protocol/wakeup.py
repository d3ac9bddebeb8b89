"""The bell: a small object that is overwritten when something begins that agents should hear of before they look again.

Where looking costs money agents look seldom. Reading one key is the cheapest request that there is, so they listen for
the bell every second. It decides nothing: one that is lost, late or rung for nothing costs no more than a look.
"""

from __future__ import annotations

import secrets
from contextlib import suppress

from monkey.errors import CorruptObject, StoreError
from monkey.protocol.layout import Keys
from monkey.store.store_port import Store

#: Seconds between looks from which on there is a bell: who looks more often needs none.
SELDOM = 8.0
#: Seconds between listenings.
LISTEN = 1.0
#: Agents above which each of them listens more seldom, in proportion, so that what all pay stays the same; and the most
#: seconds between listenings.
MANY, LISTEN_MAX = 50, 10.0


async def wake_agents(store: Store, keys: Keys) -> None:
    """Ask all agents of the project to look now. What the store says against it is of no account."""
    if store.poll >= SELDOM:
        with suppress(StoreError):
            await store.put(keys.bell, secrets.token_hex(8).encode())


def compute_listen_pause(agents: int) -> float:
    """Return the seconds between listenings of each of so many agents."""
    return min(LISTEN_MAX, LISTEN * max(1.0, agents / MANY))


class WakeupBell:
    """Hears the bell of one project."""

    def __init__(self, store: Store, keys: Keys) -> None:
        """Have heard nothing yet."""
        self._store, self._keys = store, keys
        self._last = b""

    async def rung(self) -> bool:
        """Has it rung since the last time? No answer counts as no, and so does a bell that never was."""
        before = self._last
        try:
            self._last = await self._store.get(self._keys.bell)
        except (StoreError, CorruptObject):
            return False
        return self._last != before
