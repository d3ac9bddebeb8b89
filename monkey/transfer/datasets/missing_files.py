"""What of a dataset a store lacks, by the sizes of the objects that it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from monkey.transfer.datasets.dataset import Dataset


class MissingFiles(NamedTuple):
    """What of a dataset is not in the store, or not whole."""

    #: Rows of the dataset whose objects are to be sent.
    rows: Sequence[int]
    #: Bytes of them, and of the listing where that is to be sent.
    bytes: int
    #: Is the listing to be sent?
    listing: bool
    #: Objects, by MD5, that an agent found damaged.
    damaged: Sequence[str] = ()

    @property
    def objects(self) -> int:
        """How many objects are to be sent."""
        return len(self.rows) + self.listing


def list_all_files(dataset: Dataset) -> MissingFiles:
    """Return what is missing in a store that has nothing."""
    return compare_files(dataset, {})


def compare_files(dataset: Dataset, there: Mapping[str, int]) -> MissingFiles:
    """Return what is missing in a store that has objects of these sizes."""
    sizes = [found[0] for found in dataset.signatures]
    rows: list[int] = []
    if list(map(there.get, dataset.md5s)) != sizes:
        rows = [row for md5, row in dataset.objects.items() if there.get(md5) != sizes[row]]
    lacks = not dataset.is_file and there.get(dataset.oid) != dataset.listed
    return MissingFiles(rows, sum(sizes[row] for row in rows) + lacks * dataset.listed, lacks)
