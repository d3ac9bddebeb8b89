# ruff: noqa: PTH104, PTH116
# Paths are plain strings here: there may be 100,000 of them.
"""From the store to a tree on this machine: what is missing is fetched, what is there verified, all of it linked."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import stat
from pathlib import Path

from monkey.atomic_write import write_atomically
from monkey.concurrency import run_in_lanes
from monkey.errors import CorruptObject, JobFailed, KeyMissing, StoreError
from monkey.removal import remove_below, remove_file
from monkey.store.content.objects import DAMAGED, SEND_AGAIN
from monkey.store.folded_names import check_names
from monkey.store.store_port import Store
from monkey.untrusted_files import hold_below
from monkey_agent.cache import eviction
from monkey_agent.cache.cache import Cache
from monkey_agent.cache.single_flight import run_to_end
from monkey_agent.datasets import dataset_listing, dataset_trees

#: Objects that are fetched at once.
LANES = 16
#: Times that an object is fetched that comes with wrong bytes, or that somebody removes before it is linked.
_MAX_TRIES = 3


class ObjectMissing(JobFailed):
    """The store lacks an object, or has it damaged; a machine with the data is asked to send it."""

    #: Key of the object that was missing, or of the word that it is damaged, which goes when it is sent.
    key, missing = "", False

    @classmethod
    def of(cls, key: str, *, missing: bool, why: str) -> ObjectMissing:
        """Return the error for an object; `key`: what is looked at to see whether it was sent."""
        lacking = cls(f"{why} {SEND_AGAIN}")
        lacking.key, lacking.missing = key, missing
        return lacking

    async def sent(self, store: Store) -> bool:
        """Ask whether it was sent since. Raises StoreError."""
        there = any(item.key == self.key for item in await store.list(self.key))
        return there is self.missing


class DatasetFetch:
    """One dataset on its way; may be run again, and continues where it stopped."""

    def __init__(self, store: Store, cache: Cache, oid: str, tree: str) -> None:
        """Bring the dataset `oid` to `tree`, whose lock is held, as is the right to use it."""
        self._store, self._cache, self._oid, self._tree = store, cache, oid, tree
        self._objects = f"{cache.root}/{eviction.OBJECTS}"
        self._own = f"{eviction.ASIDE}/{oid}"
        self._aside = f"{cache.root}/{self._own}"
        self._incoming = f"{self._aside}/incoming"

    async def run(self) -> None:
        """Fetch what is missing or altered. Raises JobFailed, CorruptObject, StoreError, OSError.

        A tree that is there is repaired in its place, as running jobs use it; a new one is made aside.
        """
        remove_file(f"{self._tree}.stamp")
        await run_to_end(lambda: remove_below(self._cache.root, f"{self._own}/incoming"))
        with hold_below(self._cache.root, f"{self._own}/incoming", make=True):
            pass
        if self._oid.endswith(".dir"):
            await self._directory()
        else:
            await self._object(self._oid, [self._tree])
        await run_to_end(self._finish)

    async def _directory(self) -> None:
        files = await self._files()
        await asyncio.to_thread(check_names, files, str(self._cache.root))
        place = self._place()
        making = dataset_trees.DatasetTree(place)
        await run_to_end(lambda: making.begin(files))
        await self._fill(place, files)
        await run_to_end(lambda: making.finish(files))
        if place != self._tree:
            os.rename(place, self._tree)
        os.chmod(self._tree, 0o555)  # noqa: PTH101

    def _place(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISDIR(os.lstat(self._tree).st_mode):
                return self._tree
            self._cache.trash(Path(self._tree))
        return f"{self._aside}/tree"

    async def _files(self) -> dict[str, str]:
        """Return path → MD5 of what is in the directory."""
        kept = Path(f"{self._tree}.list")
        with contextlib.suppress(FileNotFoundError, CorruptObject):
            return await asyncio.to_thread(lambda: dataset_listing.parse_listing(self._oid, kept.read_bytes()))
        try:
            data = await self._store.get(dataset_listing.spell_object_key(self._oid))
        except KeyMissing as exc:
            raise ObjectMissing.of(dataset_listing.spell_object_key(self._oid), missing=True, why=exc.message) from exc
        if hashlib.md5(data, usedforsecurity=False).hexdigest() != self._oid.removesuffix(".dir"):
            raise await self._damaged(self._oid)
        files = await asyncio.to_thread(dataset_listing.parse_listing, self._oid, data)
        await run_to_end(lambda: write_atomically(kept, data))
        return files

    async def _fill(self, place: str, files: dict[str, str]) -> None:
        paths: dict[str, list[str]] = {}
        for path, md5 in files.items():
            paths.setdefault(md5, []).append(f"{place}/{path}")

        async def fetch(item: tuple[str, list[str]]) -> None:
            await self._object(*item)
            await asyncio.sleep(0)  # small objects never wait for anything: heartbeats must not be late for them

        await run_in_lanes(paths.items(), fetch, min(LANES, len(paths)))

    async def _object(self, md5: str, targets: list[str]) -> None:
        with hold_below(self._cache.root, f"{eviction.OBJECTS}/{md5[:2]}", make=True):
            source = f"{self._objects}/{md5[:2]}/{md5[2:]}"
        for _ in range(_MAX_TRIES):
            if not await self._is_whole(source, md5):
                await self._get(md5, source)
            # Whoever makes room may remove it before it is linked.
            with contextlib.suppress(FileNotFoundError):
                for target in targets:
                    dataset_trees.link_object(source, target)
                return
        raise JobFailed(f"files vanish from the cache {self._cache.root} as soon as they are there")

    async def _is_whole(self, source: str, md5: str) -> bool:
        """Verify an object that is there; one that was altered is removed, whichever trees have it."""
        try:
            status = os.lstat(source)
        except FileNotFoundError:
            return False
        if stat.S_ISREG(status.st_mode) and await self._md5(source) == md5:
            if status.st_mode & 0o222 or status.st_mtime != dataset_trees.MODIFIED:
                dataset_trees.seal_file(source)
            return True
        self._cache.trash(Path(source))
        return False

    async def _get(self, md5: str, source: str) -> None:
        key, incoming = dataset_listing.spell_object_key(md5), f"{self._incoming}/{md5}"
        for _ in range(_MAX_TRIES):
            try:
                await self._store.get_file(key, Path(incoming))
            except KeyMissing as exc:
                raise ObjectMissing.of(key, missing=True, why=exc.message) from exc
            if await self._md5(incoming) == md5:
                dataset_trees.seal_file(incoming)
                os.rename(incoming, source)
                return
        raise await self._damaged(md5)

    async def _damaged(self, oid: str) -> ObjectMissing:
        """Ask a machine with the data to send the object again (its size may be right); return the error to raise."""
        with contextlib.suppress(StoreError):  # the next fetch finds it damaged, too
            await self._store.put(f"{DAMAGED}{oid}", b"")
        why = f"{dataset_listing.spell_object_key(oid)} is damaged in the store: its bytes have another MD5"
        return ObjectMissing.of(f"{DAMAGED}{oid}", missing=False, why=why)

    async def _md5(self, path: str) -> str:
        if os.stat(path).st_size <= dataset_trees._SMALL_BYTES:
            return dataset_trees.compute_md5(path)
        return await asyncio.to_thread(dataset_trees.compute_md5, path)

    def _finish(self) -> None:
        remove_below(self._cache.root, self._own)
        dataset_trees.write_stamp(self._tree)
        self._cache.note(Path(self._tree))

    def give_up(self) -> None:
        """Leave no half a dataset on a full disk."""
        self._cache.trash(Path(self._aside))
        eviction.drop_rubbish(str(self._cache.root))
