# ruff: noqa: PTH208
"""A look at data that goes into a directory: its files, what is known of them, and what the store has of that.

Mostly nothing moved since the last time, and then this is all: so it imports little, asyncio least of all.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from monkey.store.content.hash_worker import Walked
from monkey.store.content.hash_workers import HashWorkers, prefetch_sizes
from monkey.store.content.objects import DAMAGED, MD5_PREFIX
from monkey.store.directory.root import DirectoryRoot
from monkey.transfer.datasets.dataset import Dataset
from monkey.transfer.datasets.dataset_scan import FileRow, scan_dataset
from monkey.transfer.datasets.hash_state import HashState, read_file_clock


class DataSurvey(NamedTuple):
    """Data as it was met."""

    root: str
    rows: Sequence[FileRow]
    #: MD5 of each row, "" where it is not known yet.
    md5s: list[str]
    state: HashState
    #: When it was started, in nanoseconds since 1970.
    began: int
    #: Sizes of objects in the store, by MD5: of what was known and is not known to be damaged.
    there: Mapping[str, int]

    def dataset(self) -> Dataset:
        """Return the dataset, once all MD5s are known."""
        names, signatures = [name for name, _ in self.rows], [signature for _, signature in self.rows]
        return Dataset(self.root, names, signatures, self.md5s, told=self.state.told)


def survey_dataset(place: DirectoryRoot | None, root: str, home: Path) -> DataSurvey:
    """Look at the data at the absolute path `root`; states are kept below `home`. Raises DatasetError.

    `place`: the directory of the store; None where it has nothing.
    """
    began, at = read_file_clock(), os.path.realpath(root)
    return _look(place, HashState(home, at), began, None)


def look_ahead(root: str, home: Path, crew: HashWorkers) -> Callable[[DirectoryRoot | None], DataSurvey]:
    """Begin to look at the directory at the absolute path `root`, in a process of `crew`.

    Returns what continues that, as `survey_dataset` does, once the place is known, before `crew` does anything else.
    """
    began, at = read_file_clock(), os.path.realpath(root)
    walked = crew.begin(("walk", [at], "", ""))
    return lambda place: _look(place, HashState(home, at), began, walked)


def _look(place: DirectoryRoot | None, state: HashState, began: int, walked: Callable[[], Walked] | None) -> DataSurvey:
    # Known once, it is likely to be there: the store is looked at while the files are.
    with prefetch_sizes(state.oids if place else (), place.below(MD5_PREFIX.rstrip("/")) if place else "") as sizes:
        rows = scan_dataset(state.root, walked)
        md5s = state.known(rows)
        there = sizes()
    for oid in _damaged(place) if place else ():
        there.pop(oid, None)
    return DataSurvey(state.root, rows, md5s, state, began, there)


def _damaged(place: DirectoryRoot) -> Sequence[str]:
    with contextlib.suppress(OSError):
        return os.listdir(place.below(DAMAGED))
    return ()
