"""The limits of objects that are read into memory, by kind: the one table that readers and writers share.

Many can write into a store, so its sizes are not believed. A reader takes at most one byte more than the limit, and
a writer refuses what readers would refuse. Objects that are brought to a file have no limit here.
"""

from __future__ import annotations

from monkey.errors import ObjectTooLarge, StoreRefused
from monkey.store.store_port import Store

_KIB = 1 << 10
_MIB = 1 << 20

#: Bytes, by the part of the key that says what the object is. Honest objects stay far below; the largest seen is named.
LIMITS = {
    "format": 64 * _KIB,
    #: Listings of datasets: 95 MiB for a million files.
    "files": 256 * _MIB,
    #: A revision of a million jobs has 24 MiB.
    "sweeps": 64 * _MIB,
    "stops": _MIB,
    #: Ends: paths and hashes of up to 16 MiB of outputs (`monkey_agent.uploads.job_outputs`), 1,000 metrics.
    "jobs": 32 * _MIB,
    #: Segments of logs have 4 MiB; samples of a month have 80 MiB.
    "jobs/out": 256 * _MIB,
    #: Lists of files: 110 MiB for half a million.
    "jobs/checkpoints": 128 * _MIB,
    #: Heartbeats and segments of journals: a few ends with all their outputs.
    "agents": 64 * _MIB,
    "shipments": 32 * _MIB,
    "permits": 64 * _KIB,
    #: 32 bytes for each adopted result.
    "adoptions": 64 * _MIB,
    "notices": _MIB,
    "facts": 64 * _KIB,
    "roster": 16 * _MIB,
    "bell": _KIB,
    "queue": _KIB,
    "idle": _KIB,
    "watch": 64 * _KIB,
    "sync": 16 * _KIB,
    "boots": _MIB,
    #: Pulumi's state and its history.
    "machines": 16 * _MIB,
    #: Whose entries agents obey.
    "signers": _MIB,
}
#: The same for every other key.
OTHERS = 16 * _MIB


def find_limit(key: str) -> int:
    """Return the largest number of bytes that `get` returns of this key's object."""
    parts = key.split("/", 5)
    kind = parts[0]
    if kind == "projects" and len(parts) > 2:
        kind = parts[2]
    if kind == "jobs" and len(parts) > 5:
        kind = f"jobs/{parts[4]}"
    return LIMITS.get(kind, OTHERS)


def check_size(key: str, size: int) -> None:
    """Raise ObjectTooLarge where an object of so many bytes, or more, is not read into memory."""
    limit = find_limit(key)
    if size > limit:
        raise ObjectTooLarge(key, size, limit)


def refuse_large(key: str, data: bytes) -> None:
    """Raise StoreRefused for bytes that no reader would take."""
    limit = find_limit(key)
    if len(data) > limit:
        raise StoreRefused(
            f"{key!r} would have {len(data):,} bytes, and readers take at most {limit:,}",
            hint="split the sweep, the job's outputs or the dataset in two",
        )


class OversizedEntry(bytes):
    """The stand-in, without bytes, of an entry that is too large to be read: it counts as one that is ill-formed."""

    why = ""


async def read_entry(store: Store, key: str) -> bytes:
    """Return the bytes of a log's entry, or its OversizedEntry: it keeps its number, and stops no reader of the log.

    Raises KeyMissing, StoreError.
    """
    try:
        return await store.get(key)
    except ObjectTooLarge as exc:
        entry = OversizedEntry()
        entry.why = exc.why
        return entry
