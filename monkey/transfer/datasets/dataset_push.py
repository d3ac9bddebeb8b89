"""The hash of a dataset on its way into a store: every file is read once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from monkey.store.content.hash_workers import HashWorkers
from monkey.store.content.objects import Moved, SourceFile
from monkey.store.content.upload_progress import report_nothing
from monkey.store.directory.root import DirectoryRoot
from monkey.store.directory.store import DirectoryStore
from monkey.store.store_port import Store
from monkey.transfer.datasets import dvc_files
from monkey.transfer.datasets.dataset import Dataset
from monkey.transfer.datasets.hashing import hash_dataset
from monkey.transfer.datasets.survey import DataSurvey, survey_dataset

#: Knowledge of a dataset: a survey, the whole dataset, a function that continues a started survey, or None.
LookedDataset = DataSurvey | Dataset | Callable[[DirectoryRoot | None], DataSurvey] | None


class HashedDataset(NamedTuple):
    """A dataset, with those of its objects that are known to be in the store."""

    dataset: Dataset
    #: Rows that were stored on the way, one for each object that the store lacked.
    sent: Sequence[int] = ()
    #: MD5 to size in bytes, of objects that are in the store.
    there: Mapping[str, int] = {}


async def hash_into(
    store: Store,
    root: str,
    home: Path,
    moved: Moved = report_nothing,
    seen: LookedDataset = None,
    crew: HashWorkers | None = None,
) -> HashedDataset:
    """Return the dataset at the absolute path `root`; store files that were never hashed before where that is cheap.

    It is cheap if the store is a directory, where the copy of a file in reading costs little, or if the store is empty.
    Elsewhere, and for data of DVC, files are only hashed, and the store is later asked for their hashes. `seen`: the
    dataset or its survey, where that exists; the survey may still run in `crew`.

    Raises DatasetError, StoreError.
    """
    if isinstance(seen, Dataset):
        return HashedDataset(seen)
    place = store.place if isinstance(store, DirectoryStore) else None
    if not (place or store.empty) or dvc_files.find_dvc_root(Path(root)) is not None:
        return HashedDataset(await asyncio.to_thread(hash_dataset, Path(root), home, moved))
    met, store.empty = seen(place) if callable(seen) else seen or survey_dataset(place, root, home), False
    new = [row for row, md5 in enumerate(met.md5s) if not md5]
    if not new:
        return HashedDataset(met.dataset(), (), met.there)
    hashed: list[HashedDataset] = []

    def keep(md5s: Sequence[str]) -> None:
        hashed.append(_hashed(met, new, md5s))

    sources = [
        SourceFile(f"{met.root}/{name}" if name else met.root, signature)
        for name, signature in map(met.rows.__getitem__, new)
    ]
    lacked: set[str] = set()
    if isinstance(store, DirectoryStore):
        await store.put_contents(sources, moved, crew, keep, lacked)
    else:
        md5s = await store.put_contents(sources, moved)
        lacked.update(md5s)
        keep(md5s)
    sent = {md5: row for row, md5 in enumerate(met.md5s) if md5 in lacked}
    return hashed[0]._replace(sent=list(sent.values()))


def _hashed(met: DataSurvey, new: Sequence[int], md5s: Sequence[str]) -> HashedDataset:
    """Return the dataset, whose `new` rows have these MD5s, and save its hashes for later."""
    import tempfile  # noqa: F401 - sending the listing needs it, and here it is mostly the disk that is waited for

    for row, md5 in zip(new, md5s, strict=True):
        met.md5s[row] = md5
    dataset = met.dataset()
    met.state.save(met.rows, met.md5s, met.began, None if dataset.is_file else (dataset.oid, dataset.listed))
    return HashedDataset(
        dataset, (), {**met.there, **{md5: met.rows[row][1][0] for row, md5 in zip(new, md5s, strict=True)}}
    )
