"""Checkpoints in the store.

An attempt writes below its own claim's number and relies on nothing that another attempt wrote. A late attempt, which
does not know yet of its takeover, can thus neither overwrite nor remove what its successor relies on. A restore takes
the newest checkpoint of the highest claim. Only the attempt of the highest claim removes checkpoints of others.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from monkey.concurrency import run_in_lanes
from monkey.errors import CorruptObject, KeyMissing
from monkey.protocol.layout import Keys, parse_number
from monkey.store.create import Lost, create_object
from monkey.store.store_port import Store
from monkey_agent.checkpoints.captures import Capture
from monkey_agent.checkpoints.checkpoint_manifest import CheckpointManifest, FileEntry, decode_manifest
from monkey_agent.checkpoints.directory_scan import FileState
from monkey_agent.local_files import UPLOADS, hash_local_file

#: Claim and number of a checkpoint.
Spot = tuple[int, int]


class RemoteCheckpoints:
    """The checkpoints that one attempt, claimed at `k`, has in the store."""

    def __init__(self, store: Store, keys: Keys, job: str, k: int) -> None:
        """Start without a checkpoint of this attempt in the store."""
        self._store, self._keys, self._job, self._k = store, keys, job, k
        self._n = 0
        #: Path to state and digest when the file was hashed: an unchanged file has the same digest.
        self._digests: dict[str, tuple[FileState, str]] = {}
        self._sent: set[str] = set()
        self._manifests: dict[Spot, CheckpointManifest] = {}

    async def publish(self, capture: Capture) -> bool:
        """Send the capture's files that the store lacks, then its manifest; return False if it changed meanwhile.

        Raises StoreError; OSError where a file cannot be read.
        """
        files = dict(capture.tree.files)
        await run_in_lanes(files.items(), lambda item: self._hash(capture, *item), UPLOADS)
        pieces = {
            path: FileEntry(self._digests[path][1], seen.size, seen.mtime, seen.mode) for path, seen in files.items()
        }
        waiting = {each.sha256: path for path, each in pieces.items() if each.sha256 not in self._sent}
        await run_in_lanes(waiting.items(), lambda item: self._send(capture, *item), UPLOADS)
        if not await asyncio.to_thread(lambda: capture.is_whole):
            self._digests.clear()
            return False
        self._sent.update(waiting)
        tree = capture.tree
        await self._list(CheckpointManifest(pieces, sorted(tree.directories), tree.links, capture.history))
        return True

    async def _hash(self, capture: Capture, path: str, seen: FileState) -> None:
        known = self._digests.get(path)
        if known is None or known[0] != seen:
            self._digests[path] = seen, await hash_local_file(capture.path(path))

    async def _send(self, capture: Capture, digest: str, path: str) -> None:
        await self._store.put_file(self._keys.checkpoint_file(self._job, self._k, digest), Path(capture.path(path)))

    async def _list(self, manifest: CheckpointManifest) -> None:
        data = manifest.encode()
        while True:
            key = self._keys.checkpoint(self._job, self._k, self._n + 1)
            answer = await create_object(self._store, key, data)
            self._n += 1
            if not isinstance(answer, Lost) or answer.existing == data:
                self._manifests[self._k, self._n] = manifest
                return

    async def prune(self, keep: int) -> None:
        """Remove all but the newest `keep` checkpoints of the job; do nothing where a later attempt has some.

        Raises StoreError.
        """
        prefix = self._keys.checkpoints(self._job)
        found = [item.key.removeprefix(prefix) for item in await self._store.list(prefix)]
        spots = parse_spots(found)
        if not spots or spots[0][0] > self._k:
            return
        stays = {spot: await self._manifest(spot) for spot in spots[:keep]}
        wanted = {f"{spot[0]:08d}/files/{piece}" for spot, held in stays.items() if held for piece in held.pieces}
        # First the lists, then the files: who finds a list finds its files, or finds that it is gone and asks again.
        old = [f"{k:08d}/{n:08d}" for k, n in spots[keep:]]
        # What a later attempt sends before it has a list is none of ours.
        numbers = ((path, parse_number(path.partition("/")[0])) for path in found if "/files/" in path)
        files = [path for path, k in numbers if path not in wanted and k and k <= self._k]
        for path in [*reversed(old), *files]:
            await self._store.delete(prefix + path)
        self._sent.intersection_update(piece.rpartition("/")[2] for piece in wanted)
        self._manifests = {spot: held for spot, held in stays.items() if held}

    async def _manifest(self, spot: Spot) -> CheckpointManifest | None:
        if spot not in self._manifests:
            key = self._keys.checkpoint(self._job, *spot)
            try:
                return decode_manifest(key, await self._store.get(key))
            except (KeyMissing, CorruptObject):
                return None
        return self._manifests[spot]


def parse_spots(paths: list[str]) -> list[Spot]:
    """Return the checkpoints among `paths`, keys relative to the job's checkpoints, the newest first."""
    pairs = ([parse_number(part) for part in path.split("/")] for path in paths if path.count("/") == 1)
    return sorted(((k, n) for k, n in pairs if k and n), reverse=True)


async def remove_checkpoints(store: Store, keys: Keys, job: str) -> None:
    """Remove all checkpoints of a job that needs none any more. Raises StoreError."""
    items = await store.list(keys.checkpoints(job))
    for item in sorted(items, key=lambda item: "/files/" in item.key):
        await store.delete(item.key)
