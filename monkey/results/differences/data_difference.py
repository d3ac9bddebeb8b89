"""Datasets of two recipes: which differ, and which of their files, by the listings in the store."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from monkey.errors import CorruptObject, KeyMissing
from monkey.store.content.objects import spell_md5_key
from monkey.store.store_port import Store
from monkey.transfer.datasets.dataset import DIR, read_listing

_DIRECTORY = re.compile(r"[0-9a-f]{32}\.dir").fullmatch


class DataChange(NamedTuple):
    """A dataset whose content differs; "" for a side that does not have it."""

    name: str
    before: str
    after: str
    #: Paths of files in it, where both sides are directories.
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    #: Why its files are not known; "" for most.
    trouble: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it for programs, without what is empty."""
        told = self._asdict()
        told["a"], told["b"] = told.pop("before"), told.pop("after")
        return {name: value for name, value in told.items() if value}


class PathChanges(NamedTuple):
    """Paths that the second side alone has, that the first alone has, and that both have with other hashes."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


def compare_paths(before: Mapping[str, str], after: Mapping[str, str]) -> PathChanges:
    """Compare two listings, path to hash; the paths are sorted."""
    return PathChanges(
        tuple(sorted(after.keys() - before.keys())),
        tuple(sorted(before.keys() - after.keys())),
        tuple(sorted(path for path in before.keys() & after.keys() if before[path] != after[path])),
    )


async def compare_data(store: Store, before: Mapping[str, str], after: Mapping[str, str]) -> tuple[DataChange, ...]:
    """Return the datasets that differ, by name to hash. Raises StoreError."""
    found = []
    for name in dict.fromkeys((*after, *before)):
        old, new = before.get(name, ""), after.get(name, "")
        if old == new:
            continue
        change = DataChange(name, old, new)
        if old.endswith(DIR) and new.endswith(DIR):
            try:
                listings = [await _load_listing(store, oid) for oid in (old, new)]
                change = DataChange(name, old, new, *compare_paths(*listings))
            except KeyMissing:
                change = change._replace(trouble="its listing is not in the store any more")
            except CorruptObject as exc:
                change = change._replace(trouble=exc.message)
        found.append(change)
    return tuple(found)


async def _load_listing(store: Store, oid: str) -> dict[str, str]:
    """Return path to MD5 of a directory. Raises KeyMissing, CorruptObject where it is not what its hash promises."""
    if not _DIRECTORY(oid):
        raise CorruptObject(oid[:80], "expected an MD5 of 32 hex digits")
    data = await store.get(spell_md5_key(oid))
    if hashlib.md5(data, usedforsecurity=False).hexdigest() + DIR != oid:
        raise CorruptObject(spell_md5_key(oid), "its bytes have another MD5")
    return read_listing(data, oid)
