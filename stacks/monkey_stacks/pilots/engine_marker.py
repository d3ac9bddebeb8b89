"""The marker of a fleet of pilots in the store: without monkey.yaml it says where they were asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping

from monkey.errors import CorruptObject, KeyMissing
from monkey.protocol.layout import Keys
from monkey.store.store_port import Store

#: Bytes that a marker has at most.
_MOST = 10_000


def spell_marker_key(project: str, fleet: str) -> str:
    """Return the marker's key."""
    return f"{Keys(project).machines}{fleet}/engine.json"


async def read_marker(store: Store, project: str, fleet: str) -> Mapping[str, str] | None:
    """Return the marker of a fleet, None where there is none. Raises StoreError, CorruptObject.

    Others write to the store, too, so the caller judges what it says.
    """
    key = spell_marker_key(project, fleet)
    try:
        data = await store.get(key)
    except KeyMissing:
        return None
    try:
        found = json.loads(data) if len(data) <= _MOST else None
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise CorruptObject(key, "it is no marker of a fleet", hint="remove it, if no pilot of the fleet runs")
    return found


async def write_marker(store: Store, project: str, fleet: str, marker: Mapping[str, str]) -> None:
    """Write the marker, before the first pilot is asked for. Raises StoreError."""
    await store.put(spell_marker_key(project, fleet), json.dumps(dict(marker), sort_keys=True).encode())


async def forget_marker(store: Store, project: str, fleet: str) -> None:
    """Remove the marker, once nothing of the fleet is left. Raises StoreError."""
    await store.delete(spell_marker_key(project, fleet))
