"""A checkpoint in the store comes back: fetched once, or again where it was gone meanwhile; no wrong list does."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

from monkey.errors import KeyMissing
from monkey.protocol.layout import Keys
from monkey.store.memory import MemoryStore
from monkey_agent.checkpoints.checkpoint_manifest import CheckpointManifest, FileEntry
from monkey_agent.checkpoints.local_checkpoints import LocalCheckpoints
from monkey_agent.checkpoints.restore import RestoredCheckpoint, restore_checkpoint
from tests.loops import Run
from tests.unit.monkey_agent.saving_jobs import JOB

KEYS = Keys("p")


class CountedStore(MemoryStore):
    """Counts what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: Counter[str] = Counter()

    async def get(self, key: str) -> bytes:
        self.read[key] += 1
        return await super().get(key)

    async def get_file(self, key: str, path: Path) -> None:
        self.read[key] += 1
        await super().get_file(key, path)


class TidiedStore(MemoryStore):
    """One in which a late agent replaces the checkpoint that is asked for first."""

    asked = False

    async def get(self, key: str) -> bytes:
        if self.asked:
            return await super().get(key)
        self.asked = True
        await self.delete(key)
        await save(self, 3, {"state": b"new"})
        raise KeyMissing(key)


async def save(store: MemoryStore, k: int, files: dict[str, bytes], links: dict[str, str] | None = None) -> None:
    """Bring a checkpoint of attempt `k` to the store."""
    entries = {}
    for path, data in files.items():
        digest = hashlib.sha256(data).hexdigest()
        entries[path] = FileEntry(digest, len(data), 1, 0o600)
        await store.put(KEYS.checkpoint_file(JOB, k, digest), data)
    await store.put(KEYS.checkpoint(JOB, k, 1), CheckpointManifest(entries, [], links or {}).encode())


async def restore(store: MemoryStore, place: Path) -> tuple[RestoredCheckpoint, dict[str, bytes]]:
    """Restore the job's checkpoint; return what was brought back, and the files that the job finds."""
    (place / "job").mkdir()
    done = await restore_checkpoint(store, KEYS, LocalCheckpoints(place), JOB, str(place / "job"))
    return done, {path.name: path.read_bytes() for path in (place / "job").iterdir()}


def test_checkpoint_is_fetched_once(tmp_path: Path, run: Run) -> None:
    store = CountedStore()
    run(save(store, 1, {"old": b"old"}))
    run(save(store, 2, {"state": b"new"}))
    done, found = run(restore(store, tmp_path))
    assert found == {"state": b"new"} and done.published
    assert done.notes == ["goes on from checkpoint 2.1 of the store"]
    assert len(store.read) == 2 and set(store.read.values()) == {1}


def test_store_is_asked_again_where_a_checkpoint_was_gone_meanwhile(tmp_path: Path, run: Run) -> None:
    store = TidiedStore()
    run(save(store, 2, {"state": b"old"}))
    done, found = run(restore(store, tmp_path))
    assert found == {"state": b"new"}
    assert done.notes == ["goes on from checkpoint 3.1 of the store"]


def test_list_that_names_a_file_twice_is_left_out_for_the_one_before(tmp_path: Path, run: Run) -> None:
    store = MemoryStore()
    run(save(store, 1, {"state": b"old"}))
    run(save(store, 2, {"state": b"new", "other": b"x"}, {"state": "other"}))
    done, found = run(restore(store, tmp_path))
    assert found == {"state": b"old"}
    assert len(done.notes) == 2 and "checkpoint 2.1 is left out" in done.notes[0] and "twice" in done.notes[0]
