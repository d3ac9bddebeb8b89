"""Many files into a directory at once, by several processes."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from monkey.errors import StoreRefused
from monkey.store.content.hash_worker import read_signature
from monkey.store.content.hash_workers import _AHEAD, HashWorkers, prefetch_sizes
from monkey.store.content.objects import MD5_PREFIX, SourceFile, spell_md5_key
from monkey.store.content.upload_progress import report_nothing
from monkey.store.directory.bulk import LARGE_BYTES
from monkey.store.directory.store import DirectoryStore
from monkey.store.store_port import Store
from tests.loops import Run


def test_many_files_join_those_that_are_there(store: Store, root: Path, run: Run, tmp_path: Path) -> None:
    bodies = [b"content %d" % n for n in range(1200)]
    for n, body in enumerate(bodies):
        (tmp_path / str(n)).write_bytes(body)
    sources = [SourceFile(str(tmp_path / str(n)), read_signature((tmp_path / str(n)).stat())) for n in range(1200)]
    wanted = {hashlib.md5(body).hexdigest(): body for body in bodies}
    for half in (sources[:500], sources[500:]):  # all of the 256 directories are there the second time
        run(store.put_contents(half, lambda objects, size: None))
        # The second time by another process, which finds nothing of many.
        strange = [f"{n:032x}" for n in range(0 if half == sources[:500] else _AHEAD)]
        with prefetch_sizes([*wanted, *strange], str(root / MD5_PREFIX)) as look:
            sizes = look()
        assert {spell_md5_key(md5): size for md5, size in sizes.items()} == {
            item.key: item.size for item in run(store.list(MD5_PREFIX))
        }
    assert sizes == {md5: len(body) for md5, body in wanted.items()}
    assert all((root / spell_md5_key(md5)).read_bytes() == body for md5, body in wanted.items())
    assert not list((root / "tmp").iterdir())


def test_hashes_are_told_once_and_what_is_done_with_them_may_fail(
    store: Store, root: Path, run: Run, tmp_path: Path
) -> None:
    assert isinstance(store, DirectoryStore)
    data, told = tmp_path / "data", list[list[str]]()
    data.mkdir()
    for n in range(520):
        (data / str(n)).write_bytes(b"content %d" % n)
    (data / "large").write_bytes(b"x" * LARGE_BYTES)

    def fail(md5s: Sequence[str]) -> None:
        raise OSError(errno.ENOSPC, "told of it")

    with HashWorkers() as crew:
        files, *rest = crew.begin(("walk", [str(data)], "", ""))()
        assert len(files) == 521 and rest == [[], [], None]
        sources = [SourceFile(str(data / name), known) for name, known in files]
        for some in (sources[:-1], sources[-1:], sources):
            stored = run(store.put_contents(some, report_nothing, crew, lambda md5s: told.append(list(md5s))))
            assert told == [list(stored)] and all(stored)
            told.clear()
    with pytest.raises(StoreRefused, match="no space"):
        run(store.put_contents(sources, report_nothing, None, fail))
    assert not list((root / "tmp").iterdir())


def test_what_was_begun_and_is_not_wanted_is_not_waited_for(tmp_path: Path) -> None:
    before = children()
    with HashWorkers() as crew:
        crew.begin(("walk", [str(tmp_path)], "", ""))
        os.kill(min(children() - before), signal.SIGSTOP)  # as one whose file system does not answer
    assert children() <= before  # those of an earlier test may be gone by now


def children() -> set[int]:
    """Return the processes that are ours."""
    return {int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}
