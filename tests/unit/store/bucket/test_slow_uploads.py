"""Files go up a slow line: no more is on its way at once than arrives before a request's time is over."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

from monkey.store.bucket import client
from monkey.store.content.hash_worker import read_signature
from monkey.store.content.objects import SourceFile, spell_md5_key
from monkey.store.open import open_store
from monkey.store.store_port import Store
from tests.bucket import FakeBucket
from tests.loops import Run
from tests.services import BUCKET
from tests.slow_line import SlowLine
from tests.trusting import trust

pytestmark = pytest.mark.slow

MIB = 2**20


def open_by(line: SlowLine, run: Run) -> Store:
    """Open a store by the line."""
    trust(line.endpoint)
    opened: Store = run(open_store(f"s3://{BUCKET}/slow?endpoint={line.endpoint}", begin=True))
    return opened


def write_files(root: Path, count: int, size: int) -> list[Path]:
    """Write so many files of `size` bytes, which differ."""
    paths = [root / f"{n}" for n in range(count)]
    for path in paths:
        path.write_bytes(os.urandom(size))
    return paths


def test_many_files_of_a_megabyte_go_up_a_line_of_8_mbit(bucket: FakeBucket, run: Run, tmp_path: Path) -> None:
    """24 files began at once, each of which had eight seconds: none arrived in them, and none ever would."""
    paths = write_files(tmp_path, 24, MIB)
    sources = [SourceFile(str(path), read_signature(path.stat())) for path in paths]
    with SlowLine(bucket.endpoint) as line:
        store = open_by(line, run)
        line.rate = MIB
        found = run(store.put_contents(sources, lambda _objects, _bytes: None))
        assert list(found) == [hashlib.md5(path.read_bytes()).hexdigest() for path in paths]
        assert run(store.get(spell_md5_key(found[0]))) == paths[0].read_bytes()


def test_large_files_go_up_one_after_another(
    bucket: FakeBucket, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2 Mbit/s and the patience of two minutes, both ten times as quick: a file's parts of 8 MiB took too long."""
    monkeypatch.setattr(client, "TIMEOUT_BULK", client.TIMEOUT_BULK / 10)
    paths = write_files(tmp_path, 2, 26 * MIB)
    with SlowLine(bucket.endpoint) as line:
        store = open_by(line, run)
        line.rate = 2.5e6

        async def put_all() -> None:
            await asyncio.gather(*(store.put_file(path.name, path) for path in paths))

        run(put_all())
        for path in paths:
            run(store.get_file(path.name, tmp_path / "copy"))
            assert (tmp_path / "copy").read_bytes() == path.read_bytes()


def test_a_large_object_of_the_store_has_more_time_than_a_small_one(bucket: FakeBucket, run: Run) -> None:
    """The revision of a hundred thousand jobs has 2.4 MB: at 2 Mbit/s, ten seconds."""
    data = os.urandom(5 * MIB // 2)
    with SlowLine(bucket.endpoint) as line:
        store = open_by(line, run)
        line.rate = 2e6 / 8
        assert run(store.create("projects/p/sweeps/s/00000001", data))
        line.rate = 0
        assert run(store.get("projects/p/sweeps/s/00000001")) == data
