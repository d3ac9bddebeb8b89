"""The verification of what many jobs share: code snapshots, datasets, facts. Each is checked once."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import re
from pathlib import Path

from monkey.apply.inspect.result_facts import load_facts
from monkey.apply.verify.object_reader import ObjectReader
from monkey.apply.verify.verification_result import MISSING, EvidenceKind, VerificationResult
from monkey.concurrency import run_in_lanes
from monkey.errors import CorruptObject, KeyMissing, OneName, StoreError
from monkey.protocol.layout import Keys
from monkey.removal import remove_tree
from monkey.store.content.objects import DAMAGED, spell_md5_key
from monkey.transfer.code.extract import extract_snapshot
from monkey.transfer.datasets.dataset import DIR, read_listing
from monkey.transfer.download import LANES

_CODE, _OID = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{32}(\.dir)?")
_begin_md5 = functools.partial(hashlib.md5, usedforsecurity=False)


class SharedObjects:
    """The shared things of one verification, by their hashes."""

    def __init__(self, keys: Keys, reader: ObjectReader, result: VerificationResult) -> None:
        """Check what `reader` reads, and note it in `result`."""
        self._keys, self._reader, self._result = keys, reader, result
        self._seen: set[tuple[EvidenceKind, str]] = set()

    def is_new(self, kind: EvidenceKind, name: str) -> bool:
        """Say whether this is asked of it for the first time; then it counts as checked."""
        if (kind, name) in self._seen:
            return False
        self._seen.add((kind, name))
        self._result.checked[kind] += 1
        return True

    async def check_code(self, sha: str, directory: Path) -> None:
        """Check a code snapshot: unpacked below `directory`, its files must have the code hash. Raises StoreError."""
        if not sha or not self.is_new(EvidenceKind.CODE, sha):
            return
        key, expected = self._keys.code(sha), f"code hash {sha}"
        if not _CODE.fullmatch(sha):
            self._result.note(EvidenceKind.CODE, key, "a code hash of 64 hex digits", f"{sha[:80]!r}")
            return
        async with self._reader.bring(key) as path:
            found = MISSING if path is None else await asyncio.to_thread(_unpack, path, directory / sha, sha)
        if found:
            self._result.note(EvidenceKind.CODE, key, expected, found)

    async def check_dataset(self, oid: str) -> None:
        """Check a dataset: its listing, if it is a directory, and each of its objects. Raises StoreError."""
        if not oid.endswith(DIR):
            await self._check_object(oid)
            return
        key = spell_md5_key(oid)
        if not await self._check_object(oid):
            return
        async with self._reader.bring(key) as path:
            try:
                files = {} if path is None else await asyncio.to_thread(_list_files, path, oid)
            except CorruptObject as exc:
                self._result.note(EvidenceKind.DATA, key, "the listing of a directory", _strip_key(exc))
                return
        objects = list(dict.fromkeys(files.values()))
        await run_in_lanes(objects, self._check_listed, min(LANES, len(objects)))

    async def _check_listed(self, md5: str) -> None:
        await self._check_object(md5)

    async def _check_object(self, oid: str) -> bool:
        """Check one object of a dataset; says whether it is as recorded, as far as is known."""
        if not self.is_new(EvidenceKind.DATA, oid):
            return True
        key, expected = spell_md5_key(oid), f"md5 {oid.removesuffix(DIR)}"
        if not _OID.fullmatch(oid):
            self._result.note(EvidenceKind.DATA, key, "an MD5 of 32 hex digits", f"{oid[:80]!r}")
            return False
        found = await self._reader.compute_digest(key, _begin_md5)
        if found is None:
            self._result.note(EvidenceKind.DATA, key, expected, MISSING)
        elif found.digest != oid.removesuffix(DIR):
            self._result.note(EvidenceKind.DATA, key, expected, f"md5 {found.digest} of {found.size:,} bytes")
            with contextlib.suppress(StoreError):  # who may only read verifies, too
                await self._reader.store.put(f"{DAMAGED}{oid}", b"")  # else `push` goes by the size alone
            return False
        return found is not None

    async def check_facts(self, name: str, job: str) -> None:
        """Check facts that the end of a job names. Raises StoreError."""
        if not name or not self.is_new(EvidenceKind.FACTS, name):
            return
        key = self._keys.facts(name)
        try:
            await load_facts(self._reader.store, self._keys, name)
        except KeyMissing:
            self._result.note(EvidenceKind.FACTS, key, f"sha256 {name}", MISSING, job)
        except CorruptObject as exc:
            self._result.note(EvidenceKind.FACTS, key, f"sha256 {name}", _strip_key(exc), job)


def _unpack(archive: Path, into: Path, sha: str) -> str:
    """Return what is wrong with an archive of code; "" for one that unpacks to the code hash."""
    try:
        extract_snapshot(archive, into, sha)
    except CorruptObject as exc:
        return _strip_key(exc)
    except OneName as exc:
        return exc.message
    finally:
        remove_tree(str(into))
    return ""


def _list_files(path: Path, oid: str) -> dict[str, str]:
    return read_listing(path.read_bytes(), oid)


def _strip_key(exc: CorruptObject) -> str:
    return exc.message.removeprefix(f"{exc.key}: ")
