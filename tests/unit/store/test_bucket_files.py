"""Files that are larger than one request: parts, broken connections, and nothing left over."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from monkey.apply.world.known_stores import KnownStores
from monkey.apply.world.project_store import open_known
from monkey.errors import KeyMissing, StoreError, StoreUnavailable
from monkey.store.content.objects import MD5_PREFIX
from monkey.store.object_limits import find_limit
from monkey.store.open import open_store
from monkey.store.store_port import Store
from monkey.transfer.datasets.dataset_push import hash_into
from monkey.transfer.datasets.dataset_upload import find_missing_files, upload_dataset
from tests.bucket import FakeBucket, Fault
from tests.loops import Run

MIB = 2**20


@pytest.fixture(params=["s3", "gs"])
def store(bucket: FakeBucket, run: Run, request: pytest.FixtureRequest) -> Store:
    opened: Store = run(open_store(bucket.url(request.param), begin=True))
    return opened


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Return a file of several parts, the last one short."""
    path = tmp_path / "large"
    path.write_bytes(b"".join(hashlib.sha256(n.to_bytes(4)).digest() for n in range(21 * MIB // 32)) + b"end")
    return path


def test_a_large_file_goes_in_and_out_in_parts(
    bucket: FakeBucket, store: Store, run: Run, large: Path, tmp_path: Path
) -> None:
    run(store.put_file("k", large))
    assert bucket.counts["MULTIPART"] == 2 + 5
    assert bucket.objects.uploads == 0
    bucket.counts.clear()
    run(store.get_file("k", tmp_path / "copy"))
    assert bucket.counts == {"GET": 1 + 3}
    assert (tmp_path / "copy").read_bytes() == large.read_bytes()


def test_a_new_store_gets_each_content_once_and_is_asked_little(bucket: FakeBucket, run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for n in range(60):
        (data / f"{n}").write_bytes(b"content %d" % (n % 40))
    for most in (15, 3):  # beside the objects, the first time and the second
        bucket.log.clear()
        store = run(open_known(bucket.url(), KnownStores(tmp_path), begin=True))
        assert store is not None
        dataset, _, there = run(hash_into(store, str(data), tmp_path / "state"))
        (lacks,) = run(find_missing_files(store, [dataset], there))
        run(upload_dataset(store, dataset, lacks))
        keys = [key for key in bucket.objects.keys if key.startswith(MD5_PREFIX)]
        assert len(keys) == 41
        assert len(bucket.log) - (40 if most == 15 else 0) <= most, bucket.log


def test_parts_whose_connection_breaks_are_sent_and_read_again(
    bucket: FakeBucket, store: Store, run: Run, large: Path, tmp_path: Path
) -> None:
    bucket.faults.script([Fault.DROP, Fault.BUSY_AFTER, Fault.DROP_AFTER] * 2, lambda kind, key: key == "k")
    run(store.put_file("k", large))
    bucket.faults.script([Fault.DROP, Fault.BUSY, Fault.DROP_AFTER] * 2, lambda kind, key: key == "k")
    run(store.get_file("k", tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == large.read_bytes()


def test_what_was_replaced_meanwhile_is_not_read_half_and_half(
    bucket: FakeBucket, store: Store, run: Run, large: Path, tmp_path: Path
) -> None:
    run(store.put_file("k", large))

    def replace(kind: str, key: str) -> bool:
        # When the second of the parts is asked for.
        if kind == "GET" and bucket.counts["GET"] == 2 + begun:
            bucket.objects.put("k", b"other" * 5 * MIB, if_absent=False)
        return False

    begun = bucket.counts["GET"] + 1
    bucket.faults.script([Fault.NONE], replace)
    with pytest.raises(StoreError, match="replaced while it was read"):
        run(store.get_file("k", tmp_path / "copy"))
    assert [path.name for path in tmp_path.iterdir()] == ["large"]


def test_an_upload_that_is_refused_leaves_nothing(bucket: FakeBucket, store: Store, run: Run, large: Path) -> None:
    bucket.faults.script([Fault.NONE, Fault.NONE, Fault.DENY], lambda kind, key: key == "k" and kind == "MULTIPART")
    with pytest.raises(StoreError, match="expired"):
        run(store.put_file("k", large))
    assert bucket.objects.uploads == 0
    with pytest.raises(KeyMissing):
        run(store.get("k"))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(bucket: FakeBucket, tmp_path: Path) -> None:
    """Measured in a process of its own: how much more it takes at most than before."""
    path = tmp_path / "huge"
    with path.open("wb") as file:
        os.truncate(file.fileno(), 200 * MIB)
    code = (
        "import asyncio, json, re, sys; from pathlib import Path; from monkey.store.open import open_store\n"
        # Not getrusage: that one begins with what the parent had.
        "peak = lambda: int(re.search('VmHWM:\\\\s+(\\\\d+)', Path('/proc/self/status').read_text())[1]) // 1024\n"
        "async def main():\n"
        "    store = await open_store(sys.argv[1], begin=True)\n"
        "    before = peak(); await store.put_file('k', Path(sys.argv[2]))\n"
        "    after = peak(); await store.get_file('k', Path(sys.argv[2] + '-copy'))\n"
        "    print(json.dumps([after - before, peak() - before]))\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, bucket.url(), str(path)], capture_output=True, text=True, check=True
    )
    put, both = json.loads(done.stdout)
    assert put < 100 and both < 150, (put, both)
    assert (tmp_path / "huge-copy").stat().st_size == 200 * MIB


@pytest.mark.parametrize("key", ["projects/p/bell", "projects/p/sweeps/s/00000001"])
def test_an_answer_that_never_ends_is_not_read_to_its_end(
    bucket: FakeBucket, store: Store, run: Run, tmp_path: Path, key: str
) -> None:
    """Its header says ten bytes, and chunks come without an end."""
    run(store.put(key, b"x"))
    bucket.endless.add(key)
    tracemalloc.start()
    try:
        with pytest.raises(StoreUnavailable, match="more than the 10 bytes"):
            run(store.get(key))
        assert tracemalloc.get_traced_memory()[1] < 2 * find_limit(key) + 8 * MIB
    finally:
        tracemalloc.stop()
    assert bucket.poured < find_limit(key) + 32 * MIB
    bucket.endless.clear()
    assert run(store.get(key)) == b"x"
