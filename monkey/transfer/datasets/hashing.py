"""Hashing a dataset: what its state does not know, in several processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from monkey.errors import DatasetError
from monkey.store.content.hash_worker import Task, read_signature, split_lots
from monkey.store.content.hash_workers import HashWorkers, count_processors
from monkey.store.content.large_files import hash_large_file
from monkey.store.content.objects import Moved, SourceFile, make_refusal
from monkey.store.content.upload_progress import report_nothing
from monkey.store.directory.bulk import LARGE_BYTES
from monkey.transfer.datasets import dvc_files
from monkey.transfer.datasets.dataset import Dataset
from monkey.transfer.datasets.dataset_scan import FileRow, scan_dataset
from monkey.transfer.datasets.hash_state import HashState, read_file_clock

#: Seconds of hashing after which what is known is kept: a kill -9 costs no more than that.
KEEP_EVERY = 20.0


def hash_dataset(root: Path, home: Path, moved: Moved = report_nothing) -> Dataset:
    """Return the dataset at the absolute path `root`; states are kept below `home`.

    `moved` receives files that are hashed: no more than those that changed since the last time. Raises DatasetError
    for what cannot be taken, or changes meanwhile.
    """
    if (repository := dvc_files.find_dvc_root(root)) is not None:
        return dvc_files.hash_tracked(root, repository, home)
    began, at = read_file_clock(), os.path.realpath(root)
    rows, state = scan_dataset(at), HashState(home, at)
    md5s = state.known(rows)
    if not all(md5s):
        _fill(at, rows, md5s, moved, lambda: state.save(rows, md5s, began))
    return Dataset(at, [name for name, _ in rows], [signature for _, signature in rows], md5s)


def _fill(root: str, rows: Sequence[FileRow], md5s: list[str], moved: Moved, keep: Callable[[], None]) -> None:
    """Hash the rows without an MD5; `keep` is called now and then, and at the end, however that comes."""
    todo = [at for at, md5 in enumerate(md5s) if not md5]
    kept = time.monotonic()

    def found(at: int, md5: str) -> None:
        nonlocal kept
        md5s[at] = md5
        if time.monotonic() - kept > KEEP_EVERY:
            keep()
            kept = time.monotonic()

    def source(at: int) -> SourceFile:
        name, signature = rows[at]
        return SourceFile(f"{root}/{name}" if name else root, signature)

    try:
        _hash_small([at for at in todo if rows[at][1][0] < LARGE_BYTES], source, found, moved)
        _hash_large([at for at in todo if rows[at][1][0] >= LARGE_BYTES], source, found, moved)
    finally:
        keep()


def _hash_small(
    todo: Sequence[int], source: Callable[[int], SourceFile], found: Callable[[int, str], None], moved: Moved
) -> None:
    tasks: list[Task] = [(one.path, one.signature, "") for one in map(source, todo)]
    parts = split_lots([task[1][0] for task in tasks])

    def done(part: int, taken: Any) -> None:
        first, _ = parts[part]
        for at, (md5, why) in enumerate(taken, first):
            if not md5:
                raise make_refusal(source(todo[at]), why)
            found(todo[at], md5)
        moved(len(taken), sum(task[1][0] for task in tasks[first : first + len(taken)]))

    with HashWorkers() as crew:
        crew.work(len(parts), lambda at: ("take", tasks[slice(*parts[at])], "", ""), done)


def _hash_large(
    todo: Sequence[int], source: Callable[[int], SourceFile], found: Callable[[int, str], None], moved: Moved
) -> None:
    if not todo:
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(count_processors(), "monkey-hash") as pool:
        try:
            for at, md5 in zip(todo, pool.map(lambda at: hash_large_file(source(at), moved), todo), strict=True):
                found(at, md5)
                moved(1, 0)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def check_unchanged(dataset: Dataset) -> None:
    """Raise DatasetError unless the files are what they were when the dataset was looked at, as far as times tell."""
    for row, before in enumerate(dataset.signatures):
        path = dataset.path(row)
        try:
            same = read_signature(os.stat(path)) == before  # noqa: PTH116
        except OSError:
            same = False
        if not same:
            raise DatasetError(
                f"{path} changed while the dataset was uploaded",
                hint="wait until nobody writes it any more, and try again",
            )
