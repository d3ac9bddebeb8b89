"""Datasets that other processes fetch: killed, all at once, and from a store that DVC wrote."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from monkey.store.open import open_store
from monkey_agent.cache.cache import Cache
from monkey_agent.datasets.dataset_pool import DatasetPool
from tests.loops import Run
from tests.unit.monkey_agent.trees import FILES, path_of, read, send

FETCH = """
import asyncio, sys
from pathlib import Path
from monkey.store.open import open_store
from monkey_agent.cache.cache import Cache
from monkey_agent.datasets.dataset_pool import DatasetPool
async def main():
    store = await open_store(sys.argv[1])
    print("begin", flush=True)
    datasets = DatasetPool(store, Cache(Path(sys.argv[2])))
    await datasets.use(sys.argv[3])
    await datasets.look(sys.argv[3])
    print("done", flush=True)
asyncio.run(main())
"""


def fetch(place: Path, oid: str) -> subprocess.Popen[bytes]:
    """Start a process that fetches from `place`/store into `place`/cache; it has begun."""
    command = [sys.executable, "-c", FETCH, str(place / "store"), str(place / "cache"), oid]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begin\n"
    return process


async def stored(place: Path, files: dict[str, bytes]) -> str:
    """Put a directory into the store at `place`/store."""
    store = await open_store(str(place / "store"), begin=True)
    oid = await send(store, files)
    await store.close()
    return oid


async def fetched(place: Path, oid: str) -> dict[str, bytes]:
    """Return what a dataset holds for the next job."""
    store = await open_store(str(place / "store"))
    cache = Cache(place / "cache")
    tree = await path_of(DatasetPool(store, cache), oid)
    await cache.settle()
    await store.close()
    return read(tree)


def killed_after(seconds: float, process: subprocess.Popen[bytes]) -> bool:
    """Kill it then; says whether that was before its end."""
    with process:
        time.sleep(seconds)
        process.kill()
    return process.returncode < 0


@pytest.mark.slow
def test_killed_at_any_moment_it_is_whole_or_absent(tmp_path: Path, run: Run) -> None:
    chance = random.Random(7)
    files = {f"{i % 10}/{i}": bytes([i % 256]) * (i * 37 % 5000) + str(i).encode() for i in range(1500)}
    oid = run(stored(tmp_path, files))
    tree = tmp_path / "cache" / "datasets" / "trees" / oid
    killed = 0
    while not tree.exists() and killed < 12:
        killed += killed_after(chance.random() * 0.15, fetch(tmp_path, oid))
        assert not tree.exists() or read(tree) == files
    assert killed >= 3
    assert run(fetched(tmp_path, oid)) == files
    # And while it is mended.
    killed = 0
    for _ in range(6):
        victim = tree / "3" / "3"
        victim.chmod(0o644)
        victim.write_text("altered")
        killed += killed_after(chance.random() * 0.1, fetch(tmp_path, oid))
    assert killed >= 2
    assert run(fetched(tmp_path, oid)) == files
    run(Cache(tmp_path / "cache", most=0).trim())
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.name != "trim.lock"]


def test_processes_that_ask_together_fetch_once(tmp_path: Path, run: Run) -> None:
    oid = run(stored(tmp_path, {f"{i}": str(i).encode() * 500 for i in range(800)}))
    together = [fetch(tmp_path, oid) for _ in range(4)]
    ends = [(process.communicate(timeout=60)[0], process.returncode) for process in together]
    assert ends == [(b"done\n", 0)] * 4
    tree = tmp_path / "cache" / "datasets" / "trees" / oid
    # An object that was fetched twice would leave a tree that has it and an object that has not.
    assert {path.stat().st_nlink for path in tree.iterdir()} == {2}


@pytest.mark.slow
@pytest.mark.needs("dvc")
def test_what_dvc_writes_is_read(tmp_path: Path, run: Run) -> None:
    project = tmp_path / "project"
    for path, data in FILES.items():
        (project / "data" / path).parent.mkdir(parents=True, exist_ok=True)
        (project / "data" / path).write_bytes(data)
    env = {**os.environ, "DVC_NO_ANALYTICS": "1", "DVC_SITE_CACHE_DIR": str(tmp_path / "site")}
    run(stored(tmp_path, {}))
    for command in ("init --no-scm", f"remote add -d r {tmp_path}/store", "add -q data", "push -q"):
        subprocess.run([sys.executable, "-m", "dvc", *command.split()], cwd=project, env=env, check=True)
    oid = next(line.split()[-1] for line in (project / "data.dvc").read_text().splitlines() if "md5: " in line)
    assert run(fetched(tmp_path, oid)) == FILES
