"""The room that datasets take: what goes first, and what is said where there is none."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.store.memory import MemoryStore
from monkey_agent.cache.cache import Cache
from monkey_agent.datasets import dataset_listing
from monkey_agent.datasets.dataset_pool import DatasetPool
from tests.loops import Run
from tests.unit.monkey_agent.trees import Counting, md5, path_of, read, send


def taken(cache: Path) -> int:
    """Return the bytes that all objects take of the disk."""
    return sum(path.stat().st_blocks * 512 for path in (cache / "datasets" / "objects").rglob("*") if path.is_file())


def test_the_least_recently_used_go_and_none_that_is_used(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = Counting()
        names = "abcde"
        oids = {n: await send(store, {"own": n.encode() * 1_000_000, "shared": b"s" * 100_000}) for n in names}
        cache = Cache(tmp_path, most=3_500_000)
        datasets = DatasetPool(store, cache)
        trees_of = {n: tmp_path / "datasets" / "trees" / oids[n] for n in names}
        _, running = await datasets.use(oids["a"])
        for n in "bcbd":
            await path_of(datasets, oids[n])
            await cache.settle()
            await asyncio.sleep(0.01)  # times of change are told apart by no less
        assert {n for n in names if trees_of[n].exists()} == set("abd")
        assert taken(tmp_path) <= 3_500_000
        # Beyond the cap, what is used stays.
        held = [await datasets.use(oids[n]) for n in names]
        assert all((trees_of[n] / "own").read_bytes() == n.encode() * 1_000_000 for n in names)
        assert taken(tmp_path) > 5_000_000
        for _, use in held:
            use.close()
        running.close()
        await cache.settle()
        await cache.trim()
        assert taken(tmp_path) <= 3_500_000
        assert not list((tmp_path / "trash").iterdir())
        store.fetched.clear()
        assert read(await path_of(datasets, oids["a"]))["own"] == b"a" * 1_000_000
        assert dataset_listing.spell_object_key(md5(b"s" * 100_000)) not in store.fetched

    run(scenario())


SMALL_DISK = """
import asyncio, os, sys
sys.path.insert(0, os.getcwd())
from pathlib import Path
from monkey.errors import JobFailed
from monkey.spec.job.recipe import Recipe, SweepSettings
from monkey.store.memory import MemoryStore
from monkey_agent.cache.cache import Cache
from monkey_agent.datasets.dataset_pool import DatasetPool
from tests.unit.monkey_agent.trees import read, send
async def main():
    store, cache = MemoryStore(), Cache(Path("/mnt/cache"), most=1 << 40)
    datasets = DatasetPool(store, cache, remembered=0)
    files = [{str(i): bytes([n, i]) * 500_000 for i in range(6)} for n in range(3)]
    oids = [await send(store, each) for each in files]
    for oid, each in zip(oids, files):  # the third has room only where the first was
        tree, use = await datasets.use(oid)
        assert read(tree) == each
        use.close()
    assert not (Path("/mnt/cache/datasets/trees") / oids[0]).exists()
    held = [await datasets.use(oid) for oid in oids[1:]]
    try:
        await datasets.use(oids[0])
    except JobFailed as exc:
        print(exc.message)
    assert [read(tree) for tree, _ in held] == files[1:]
    free = os.statvfs("/mnt")
    assert free.f_bavail * free.f_frsize > 2_000_000, "half a dataset was left"
asyncio.run(main())
"""


def test_a_full_disk_is_told_after_all_that_could_go_has_gone(tmp_path: Path, require: Callable[[str], str]) -> None:
    require("mount")
    mount = f"mount -t tmpfs -o size=16m none /mnt && exec {sys.executable} -c '{SMALL_DISK}'"
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", mount]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "the disk of this machine is full" in done.stdout
    assert "in use" in done.stdout


@pytest.mark.slow
def test_more_names_than_a_file_can_have(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        oid = await send(store, {f"{i // 1000}/{i}": b"" for i in range(65_100)})
        tree = await path_of(DatasetPool(store, Cache(tmp_path)), oid)
        assert sum(len(files) for _, _, files in os.walk(tree)) == 65_100
        assert max(path.stat().st_nlink for path in (tree / "0").iterdir()) <= 65_100

    run(scenario())
