"""Getting datasets into a store: what is missing there, all of it durable before the listing that names it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from monkey.errors import CorruptObject, KeyMissing
from monkey.store.content.objects import DAMAGED, MD5_PREFIX, Moved, spell_md5_key
from monkey.store.content.upload_progress import report_nothing
from monkey.store.object_limits import refuse_large
from monkey.store.store_port import Store
from monkey.transfer.datasets.dataset import DIR, Dataset, read_listing
from monkey.transfer.datasets.hashing import check_unchanged
from monkey.transfer.datasets.missing_files import MissingFiles, compare_files

#: Up to so many objects are asked for one by one.
_FEW_OBJECTS = 24

#: A store with more objects than this is listed by prefixes, several at once, rather than page after page.
HUGE = 50_000

#: Keys of one page of a listing, in most buckets.
PAGE = 1000

#: Begins the keys of objects and of what is said of damaged ones, and no others.
BOTH = "files/"

#: Requests at once.
_CONCURRENCY = 16

#: Prefixes that objects are spread over.
_PREFIXES = 256


async def find_missing_files(
    store: Store, datasets: Sequence[Dataset], known: Mapping[str, int] = MappingProxyType({})
) -> list[MissingFiles]:
    """Return what each of the datasets lacks in the store, by one look at it; `known`: sizes of objects seen there.

    An object of another size counts, and one that an agent found damaged.

    Raises StoreError.
    """
    if not datasets:
        return []
    wanted = {oid: None for dataset in datasets for oid in (*dataset.md5s, dataset.oid) if oid not in known}
    sizes, damaged = await _listed(store, list(wanted))
    there = {**known, **sizes}
    for oid in damaged:
        there.pop(oid, None)
    return [
        compare_files(dataset, there)._replace(damaged=sorted(damaged and damaged & {dataset.oid, *dataset.objects}))
        for dataset in datasets
    ]


async def is_stored(store: Store, oid: str) -> bool:
    """Tell whether the store has all objects of the dataset with this hash, none of them known to be damaged.

    Raises StoreError.
    """
    oids = [oid]
    if oid.endswith(DIR):
        try:
            data = await store.get(spell_md5_key(oid))
            oids += set(read_listing(data, oid).values())
        except (KeyMissing, CorruptObject):
            return False
        if hashlib.md5(data, usedforsecurity=False).hexdigest() + DIR != oid:
            return False
    sizes, damaged = await _listed(store, oids)
    return sizes.keys() - damaged >= set(oids)


async def _listed(store: Store, oids: Sequence[str]) -> tuple[dict[str, int], set[str]]:
    """Return the sizes of objects in the store, at least of those of `oids` that are there, and which are damaged."""
    if len(oids) <= _FEW_OBJECTS:
        return _parted(await _sizes(store, [*map(spell_md5_key, oids), DAMAGED]))
    prefixes = sorted({f"{MD5_PREFIX}{oid[:2]}/" for oid in oids})
    first = await _sizes(store, prefixes[:1])
    around = len(first) * _PREFIXES
    if around > (PAGE if len(prefixes) < _PREFIXES // 4 else HUGE):
        return _parted(first | await _sizes(store, [*prefixes[1:], DAMAGED]))
    return _parted(await _sizes(store, [BOTH]))


def _parted(found: Mapping[str, int]) -> tuple[dict[str, int], set[str]]:
    begin, two = len(MD5_PREFIX), len(MD5_PREFIX) + 2
    sizes = {key[begin:two] + key[two + 1 :]: size for key, size in found.items() if key.startswith(MD5_PREFIX)}
    return sizes, {key.removeprefix(DAMAGED) for key in found if key.startswith(DAMAGED)}


async def _sizes(store: Store, prefixes: Sequence[str]) -> dict[str, int]:
    """Return the size of every key below the prefixes."""
    found: dict[str, int] = {}
    queue = iter(prefixes)

    async def look() -> None:
        for prefix in queue:
            found.update((key, size) for key, size, _ in await store.list(prefix))

    await asyncio.gather(*(look() for _ in range(min(_CONCURRENCY, len(prefixes)))))
    return found


async def upload_dataset(store: Store, dataset: Dataset, lacks: MissingFiles, moved: Moved = report_nothing) -> None:
    """Send what the dataset lacks in the store; the listing last, once all else would survive a loss of power.

    Raises DatasetError where a file is not what it was, and StoreError. What was sent by then stays, and is not sent
    again by the next try.
    """
    if lacks.rows:
        await store.put_contents([dataset.source(row) for row in lacks.rows], moved)
        await asyncio.to_thread(check_unchanged, dataset)
    if lacks.listing:
        await _put_listing(store, dataset)
        moved(1, len(dataset.listing))
    for oid in lacks.damaged:
        await store.delete(DAMAGED + oid)


async def _put_listing(store: Store, dataset: Dataset) -> None:
    import tempfile  # slow to import, and most never get here

    assert dataset.oid.endswith(DIR)
    refuse_large(spell_md5_key(dataset.oid), dataset.listing)
    with tempfile.TemporaryDirectory(prefix="monkey-data-") as directory:
        aside = Path(directory, "listing")
        aside.write_bytes(dataset.listing)  # noqa: ASYNC240 - a small local file
        await store.put_file(spell_md5_key(dataset.oid), aside)
