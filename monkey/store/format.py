"""The object `format`: what makes a place a store, and which one it is."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from monkey import origin
from monkey.errors import CorruptObject, StoreFormat
from monkey.version import __version__

#: The key.
FORMAT = "format"

#: The layout that this monkey writes, and the newest that it reads.
VERSION = 3
#: The first layout in which ends may hold files (`monkey.protocol.record.end_files`): older agents take such an end for
#: bytes that are none, and would run the job again.
FILES_IN_ENDS = 2
#: The first layout in which claims and heartbeats may have a lease (`monkey.protocol.liveness.lease`): older agents
#: take such a claim for bytes that are none, and would take the job over after 90 seconds.
LEASES = 2
#: The first layout in which segments of logs and shipments are packed (`monkey.protocol.record.packed_segments`): older
#: readers show such a log as it is, and older agents lose the metrics of such a shipment.
PACKED_SEGMENTS = 3


@dataclass(frozen=True)
class StoreLayout:
    """What `format` says: the layout's version, and an id that no other store has."""

    id: str
    version: int = VERSION

    def encode(self) -> bytes:
        """Return the bytes to store."""
        return json.dumps({"format": self.version, "id": self.id, "written_by": __version__}).encode() + b"\n"


def make_store_layout() -> StoreLayout:
    """Return a format with an id of its own."""
    return StoreLayout(os.urandom(8).hex())


def decode_format(data: bytes, url: str) -> StoreLayout:
    """Read what `encode` wrote; raises StoreFormat where it is newer than we are, Corrupt where it is none."""
    try:
        said = json.loads(data)
        version, store_id = said["format"], said["id"]
        if type(version) is not int:
            raise TypeError(version)
    except (ValueError, TypeError, KeyError, RecursionError) as exc:
        # What was found is not shown: in a stranger's branch it may be a link to somebody's keys.
        raise CorruptObject(
            FORMAT, f"expected a JSON object with 'format' and 'id', found {len(data):,} other bytes (store {url})"
        ) from exc
    if version > VERSION:
        raise StoreFormat(
            f"the store {url} has layout {version} (written by monkey {said.get('written_by', 'unknown')}), "
            f"this is an older state of monkey ({__version__}), which reads layouts up to {VERSION}",
            hint=f"get a newer monkey (`git pull` in its clone), then {origin.hint_install()}",
        )
    if not isinstance(store_id, str) or not store_id:
        raise CorruptObject(FORMAT, f"expected an 'id', found {store_id!r} (store {url})")
    return StoreLayout(store_id, version)
