"""Hashing a dataset on its way into a store: every file is read once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from monkey.store.base import Store
from monkey.store.contents import Moved, Source
from monkey.store.directory import DirectoryStore
from monkey.transfer import dataset_dvc
from monkey.transfer.dataset import Dataset
from monkey.transfer.dataset_hash import hash_dataset, quiet
from monkey.transfer.dataset_scan import scan
from monkey.transfer.dataset_state import State, now


async def hash_into(store: Store, root: str, home: Path, moved: Moved = quiet) -> tuple[Dataset, Sequence[int]]:
    """Return the dataset at the absolute path `root`, and the rows stored on the way: those never hashed before.

    For a directory, where the copy costs little once a file is read; over a network, whether the store has a file is
    asked first, by its hash. Raises DatasetError, StoreError.
    """
    if not isinstance(store, DirectoryStore) or dataset_dvc.repository(Path(root)) is not None:
        return await asyncio.to_thread(hash_dataset, Path(root), home, moved), ()
    began, at = now(), os.path.realpath(root)  # noqa: ASYNC240 - a local path
    rows, state = scan(at), State(home, at)
    md5s = state.known(rows)
    new = [row for row, md5 in enumerate(md5s) if not md5]
    if new:
        sources = [Source(f"{at}/{rows[row][0]}" if rows[row][0] else at, rows[row][1]) for row in new]
        for row, md5 in zip(new, await store.put_contents(sources, moved), strict=True):
            md5s[row] = md5
        state.save(rows, md5s, began)
    return Dataset(at, [name for name, _ in rows], [signature for _, signature in rows], md5s), new
