"""Datasets to put into a store, and ways to look at what became of them."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

from monkey.store.memory import MemoryStore
from monkey_agent.datasets import dataset_listing
from monkey_agent.datasets.dataset_pool import DatasetPool

FILES = {"train/a.txt": b"first\n", "train/b c.bin": b"\0" * 3_000_000, "é/deep/x": b"", "top": b"first\n"}


def md5(data: bytes) -> str:
    """Return 32 hex."""
    return hashlib.md5(data).hexdigest()


async def send(store: Any, files: dict[str, bytes]) -> str:
    """Put a directory into a store as DVC does, by the plainest means; returns its id."""
    for data in files.values():
        await store.put(dataset_listing.spell_object_key(md5(data)), data)
    entries = [{"md5": md5(data), "relpath": path} for path, data in sorted(files.items())]
    text = json.dumps(entries, sort_keys=True).encode()
    await store.put(dataset_listing.spell_object_key(f"{md5(text)}.dir"), text)
    return f"{md5(text)}.dir"


def read(tree: Path) -> dict[str, bytes]:
    """Return what a tree holds."""
    return {path.relative_to(tree).as_posix(): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


class Counting(MemoryStore):
    """A store that counts what is fetched from it."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    async def get_file(self, key: str, path: Path) -> None:
        """See `Store.get_file`."""
        self.fetched.append(key)
        await asyncio.sleep(0.001)
        await super().get_file(key, path)


async def path_of(datasets: DatasetPool, oid: str) -> Path:
    """Return where a dataset is that is used no longer than it takes to say so, as a job does that begins now."""
    path, use = await datasets.use(oid)
    with use:
        await datasets.look(oid)
        return path
