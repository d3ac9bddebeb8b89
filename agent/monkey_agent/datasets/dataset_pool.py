"""Datasets on this machine: fetched once by hash, verified, and shared read-only by all jobs of all agents."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections import defaultdict
from pathlib import Path

from monkey.errors import CorruptObject, JobFailed
from monkey.store.store_port import Store
from monkey.untrusted_files import hold_below
from monkey_agent.cache.cache import Cache, CacheUse
from monkey_agent.cache.recent_failures import RecentFailures, copy_error
from monkey_agent.cache.single_flight import SingleFlight
from monkey_agent.datasets import dataset_listing, dataset_trees
from monkey_agent.datasets.dataset_fetch import DatasetFetch, ObjectMissing
from monkey_agent.local_files import explain_os_error

#: Seconds for which a failure is remembered: few, since an apply that sends what was missing must count.
_REMEMBERED = 5.0
#: Files up to which a look at a tree is no work: half a millisecond.
_FEW_FILES = 256


class DatasetPool:
    """The datasets in the cache."""

    def __init__(self, store: Store, cache: Cache, remembered: float = _REMEMBERED) -> None:
        """Fetch from `store`; after a failure, rest `remembered` seconds."""
        self._store, self._cache = store, cache
        self._trees = cache.root / "datasets" / "trees"
        self._fetches: SingleFlight[None] = SingleFlight()
        self.failures = RecentFailures(remembered)
        #: Dataset to what of it the store lacked at the last try.
        self._lacking: dict[str, ObjectMissing] = {}
        self._looks: SingleFlight[bool] = SingleFlight()
        #: How many looks at a tree have started: who asks later joins a later one.
        self._begun: defaultdict[str, int] = defaultdict(int)
        self._looking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def use(self, oid: str) -> tuple[Path, CacheUse]:
        """Return where a dataset is, fetched if need be, and the right to use it; `look` before a job does.

        Raises JobFailed, CorruptObject, StoreError.
        """
        dataset_listing.spell_object_key(oid)
        tree = self._trees / oid
        try:
            use = await self._cache.use(tree)
        except OSError as exc:
            raise JobFailed(f"a dataset cannot be kept here: {explain_os_error(exc)}") from exc
        try:
            if not dataset_trees.is_there(str(tree)):
                await self._fetches.join(oid, lambda: self._obtain(oid, tree))
        except BaseException:
            use.close()
            raise
        return tree, use

    async def look(self, oid: str) -> None:
        """See that a dataset, to which one has the right, is what was applied: what a job altered is fetched again.

        Raises JobFailed, CorruptObject, StoreError.
        """
        tree = self._trees / oid
        if not await self._is_sound(oid, str(tree)):
            await self._fetches.join(oid, lambda: self._obtain(oid, tree))

    async def _is_sound(self, oid: str, tree: str) -> bool:
        """Say whether no job has altered it, by a look that begins now or later; who asks together shares one."""
        stamp = dataset_trees.read_stamp(tree)
        if stamp is None or stamp.files <= _FEW_FILES:
            return dataset_trees.is_sound(tree, stamp)
        return await self._looks.join(f"{oid}/{self._begun[oid]}", lambda: self._look(oid, tree))

    async def _look(self, oid: str, tree: str) -> bool:
        async with self._looking[oid]:
            self._begun[oid] += 1
            return await asyncio.to_thread(lambda: dataset_trees.is_sound(tree, dataset_trees.read_stamp(tree)))

    async def _obtain(self, oid: str, tree: Path) -> None:
        if not await self._sent_since(oid):
            self.failures.check(oid)
        try:
            async with self._cache.making(tree):
                # Another process may have done it while we waited.
                if not await asyncio.to_thread(
                    lambda: dataset_trees.is_sound(str(tree), dataset_trees.read_stamp(str(tree)))
                ):
                    await self._fetch(DatasetFetch(self._store, self._cache, oid, str(tree)))
        except (JobFailed, CorruptObject) as exc:
            if isinstance(exc, ObjectMissing):
                self._lacking[oid] = copy_error(exc)
            raise self.failures.remember(oid, JobFailed(f"a dataset cannot be had: {exc.message}")) from exc
        except OSError as exc:
            raise self.failures.remember(
                oid, JobFailed(f"a dataset cannot be kept here: {explain_os_error(exc)}")
            ) from exc
        self._cache.trim_soon()

    async def _sent_since(self, oid: str) -> bool:
        """Ask whether what the store lacked at the last try was sent: `push`, then `retry`, need no pause between."""
        lacking = self._lacking.get(oid)
        if lacking is None or not await lacking.sent(self._store):
            return False
        del self._lacking[oid]
        return True

    async def _fetch(self, fetch: DatasetFetch) -> None:
        try:
            await self._cache.with_room(fetch.run)
        except OSError as exc:
            if exc.errno in (errno.ENOSPC, errno.EDQUOT):
                await asyncio.to_thread(fetch.give_up)
                hint = f"the cache {self._cache.root} holds nothing more that is not in use"
                raise JobFailed(f"{explain_os_error(exc)} (hint: {hint})") from exc
            raise

    def named(self, tree: Path, name: str) -> Path:
        """Return a path to a dataset that is a single file, which ends in `name`. Raises JobFailed.

        `name` comes from the store: one that is no plain name is not used.
        """
        if not name or name in (".", "..") or "/" in name or "\0" in name:
            return tree
        link = self._trees.with_name("names") / tree.name / name
        try:
            if not link.is_symlink():
                below = f"datasets/names/{tree.name}"
                with contextlib.suppress(FileExistsError), hold_below(self._cache.root, below, make=True) as at:
                    os.symlink(f"../../{self._trees.name}/{tree.name}", name, dir_fd=at)  # another may be faster
        except OSError as exc:
            raise JobFailed(f"a dataset cannot be kept here: {explain_os_error(exc)}") from exc
        return link

    async def close(self) -> None:
        """Stop what is being fetched."""
        await self._fetches.close()
        await self._looks.close()
