"""Hashing a dataset on its way into a store: every file is read once."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from monkey.store.base import Store
from monkey.store.contents import Moved, Source
from monkey.store.directory import DirectoryStore
from monkey.transfer import dataset_dvc
from monkey.transfer.dataset import Dataset
from monkey.transfer.dataset_hash import hash_dataset, quiet
from monkey.transfer.dataset_scan import Row, scan
from monkey.transfer.dataset_state import State, now


class Hashed(NamedTuple):
    """A dataset, and what was met of its objects in the store."""

    dataset: Dataset
    #: Rows that were stored on the way: those never hashed before.
    sent: Sequence[int] = ()
    #: Sizes of objects that are there.
    there: Mapping[str, int] = {}


async def hash_into(store: Store, root: str, home: Path, moved: Moved = quiet) -> Hashed:
    """Return the dataset at the absolute path `root`, whose files never hashed before are in the store by then.

    For a directory, where the copy costs little once a file is read; over a network, whether the store has a file is
    asked first, by its hash. Raises DatasetError, StoreError.
    """
    if not isinstance(store, DirectoryStore) or dataset_dvc.repository(Path(root)) is not None:
        return Hashed(await asyncio.to_thread(hash_dataset, Path(root), home, moved))
    began, at = now(), os.path.realpath(root)  # noqa: ASYNC240 - a local path
    state = State(home, at)
    with contextlib.ExitStack() as stack:
        # Known once, it is likely to be there: the store is looked at while the files are.
        look: Callable[[], Mapping[str, int]] = stack.enter_context(store.sizes_ahead()) if state.many else dict
        rows = scan(at)
        md5s = state.known(rows)
        new = [row for row, md5 in enumerate(md5s) if not md5]
        for row, md5 in zip(new, await _store(store, at, [rows[row] for row in new], moved), strict=True):
            md5s[row] = md5
        if new:
            state.save(rows, md5s, began)
        there = {**look(), **{md5s[row]: rows[row][1][0] for row in new}}
    return Hashed(Dataset(at, [name for name, _ in rows], [signature for _, signature in rows], md5s), new, there)


async def _store(store: Store, root: str, rows: Sequence[Row], moved: Moved) -> Sequence[str]:
    """Hash and store these files, and return their MD5s."""
    sources = [Source(f"{root}/{name}" if name else root, signature) for name, signature in rows]
    return await store.put_contents(sources, moved) if sources else ()
