"""Hashing a dataset on its way into a store: every file is read once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from monkey.store.base import Store
from monkey.store.contents import Moved, Source
from monkey.store.directory import DirectoryStore
from monkey.transfer import dataset_dvc
from monkey.transfer.dataset import Dataset
from monkey.transfer.dataset_hash import hash_dataset, quiet
from monkey.transfer.dataset_look import Look, look
from monkey.transfer.dataset_scan import Row


class Hashed(NamedTuple):
    """A dataset, and what was met of its objects in the store."""

    dataset: Dataset
    #: Rows that were stored on the way: those never hashed before.
    sent: Sequence[int] = ()
    #: Sizes of objects that are there.
    there: Mapping[str, int] = {}


async def hash_into(
    store: Store, root: str, home: Path, moved: Moved = quiet, seen: Look | Dataset | None = None
) -> Hashed:
    """Return the dataset at the absolute path `root`, whose files never hashed before are in the store by then.

    That is, into a directory, where the copy costs little once a file is read, and where nothing is yet; else, whether
    the store has a file is asked first, by its hash. `seen`: it was looked at, or hashed, already.

    Raises DatasetError, StoreError.
    """
    if isinstance(seen, Dataset):
        return Hashed(seen)
    place = store.place if isinstance(store, DirectoryStore) else None
    if not (place or store.empty) or dataset_dvc.repository(Path(root)) is not None:
        return Hashed(await asyncio.to_thread(hash_dataset, Path(root), home, moved))
    seen, store.empty = seen or look(place, root, home), False
    rows, md5s = seen.rows, seen.md5s
    new = [row for row, md5 in enumerate(md5s) if not md5]
    for row, md5 in zip(new, await _store(store, seen.root, [rows[row] for row in new], moved), strict=True):
        md5s[row] = md5
    dataset = seen.dataset()
    if new:
        seen.state.save(rows, md5s, seen.began, None if dataset.is_file else (dataset.oid, dataset.listed))
    return Hashed(dataset, new, {**seen.there, **{md5s[row]: rows[row][1][0] for row in new}})


async def _store(store: Store, root: str, rows: Sequence[Row], moved: Moved) -> Sequence[str]:
    """Hash and store these files, and return their MD5s."""
    sources = [Source(f"{root}/{name}" if name else root, signature) for name, signature in rows]
    return await store.put_contents(sources, moved) if sources else ()
