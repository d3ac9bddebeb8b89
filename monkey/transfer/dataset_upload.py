"""Getting datasets into a store: what is missing there, all of it durable before the listing that names it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from monkey.errors import Corrupt, KeyMissing
from monkey.store.base import Store
from monkey.store.contents import DAMAGED, FILES, Moved, object_key
from monkey.transfer.dataset import DIR, Dataset, read_listing
from monkey.transfer.dataset_hash import quiet, unchanged
from monkey.transfer.dataset_missing import Missing, compared

#: Up to so many objects are asked for one by one.
FEW = 24

#: A store with more objects than this is listed by prefixes, several at once, rather than page after page.
HUGE = 50_000

#: Requests at once.
AT_ONCE = 16

#: Prefixes that objects are spread over.
_PREFIXES = 256


async def missing(
    store: Store, datasets: Sequence[Dataset], known: Mapping[str, int] = MappingProxyType({})
) -> list[Missing]:
    """Return what each of the datasets lacks in the store, by one look at it; `known`: sizes of objects seen there.

    An object of another size counts, and one that an agent found damaged.

    Raises StoreError.
    """
    wanted = {md5: None for dataset in datasets for md5 in dataset.objects}
    wanted |= {dataset.oid: None for dataset in datasets}
    there = {**known, **await _sizes(store, [oid for oid in wanted if oid not in known])}
    for item in await store.list(DAMAGED) if datasets else ():
        there.pop(item.key.removeprefix(DAMAGED), None)
    return [compared(dataset, there) for dataset in datasets]


async def holds(store: Store, oid: str) -> bool:
    """Tell whether the store has all objects of the dataset with this hash, none of them known to be damaged.

    Raises StoreError.
    """
    oids = [oid]
    if oid.endswith(DIR):
        try:
            data = await store.get(object_key(oid))
            oids += set(read_listing(data, oid).values())
        except (KeyMissing, Corrupt):
            return False
        if hashlib.md5(data, usedforsecurity=False).hexdigest() + DIR != oid:
            return False
    damaged = {item.key.removeprefix(DAMAGED) for item in await store.list(DAMAGED)}
    return (await _sizes(store, oids)).keys() - damaged >= set(oids)


async def _sizes(store: Store, oids: Sequence[str]) -> dict[str, int]:
    """Return the sizes of objects in the store, at least of those of `oids` that are there."""
    if len(oids) <= FEW:
        return await _listed(store, [object_key(oid) for oid in oids])
    prefixes = sorted({f"{FILES}{oid[:2]}/" for oid in oids})
    first = await _listed(store, prefixes[:1])
    if len(prefixes) < _PREFIXES // 4 or len(first) * _PREFIXES > HUGE:
        return first | await _listed(store, prefixes[1:])
    return await _listed(store, [FILES])


async def _listed(store: Store, prefixes: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    queue = iter(prefixes)

    async def look() -> None:
        for prefix in queue:
            for key, size, _ in await store.list(prefix):
                found[key[len(FILES) : len(FILES) + 2] + key[len(FILES) + 3 :]] = size

    await asyncio.gather(*(look() for _ in range(min(AT_ONCE, len(prefixes)))))
    return found


async def upload(store: Store, dataset: Dataset, lacks: Missing, moved: Moved = quiet) -> None:
    """Send what the dataset lacks in the store; the listing last, once all else would survive a loss of power.

    Raises DatasetError where a file is not what it was, and StoreError. What was sent by then stays, and is not sent
    again by the next try.
    """
    if lacks.rows:
        await store.put_contents([dataset.source(row) for row in lacks.rows], moved)
        await asyncio.to_thread(unchanged, dataset)
    if lacks.listing:
        await _put_listing(store, dataset)
        moved(1, len(dataset.listing))
    for item in await store.list(DAMAGED):
        if (oid := item.key.removeprefix(DAMAGED)) in dataset.objects or oid == dataset.oid:
            await store.delete(item.key)


async def _put_listing(store: Store, dataset: Dataset) -> None:
    import tempfile  # slow to import, and most never get here

    assert dataset.oid.endswith(DIR)
    with tempfile.TemporaryDirectory(prefix="monkey-data-") as directory:
        aside = Path(directory, "listing")
        aside.write_bytes(dataset.listing)  # noqa: ASYNC240 - a small local file
        await store.put_file(object_key(dataset.oid), aside)
