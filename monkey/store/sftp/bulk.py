"""Many files to the host, durably: written aside all together, synced at once, then named.

The order is `monkey.store.directory.bulk`'s: bytes on disk before the name, names on disk before readers learn them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from monkey.concurrency import run_all, run_in_lanes
from monkey.store.content.objects import Moved, SourceFile, spell_md5_key
from monkey.store.sftp.disk_sync import SftpSyncer
from monkey.store.sftp.publish import SftpPublisher
from monkey.store.sftp.root import SftpRoot
from monkey.store.sftp.wire.sftp_connection import SftpConnection
from monkey.store.sftp.wire.sftp_requests import SftpRequests
from monkey.store.store_port import Store
from monkey.store.upload_each import WHOLE, put_large, read_whole

#: Files that are synced and named together, and their bytes: a lost connection costs no more than that.
BATCH_FILES, BATCH_BYTES = 4096, 64 * 1024 * 1024

#: Files that are open on the host at the same time.
OPEN = 64

#: Bytes up to which a file is read and hashed in the calling thread: a hop to another one costs more.
_SMALL_BYTES = 128 * 1024


async def send_in_batches(
    store: Store,
    sources: Sequence[SourceFile],
    moved: Moved,
    send: Callable[[Sequence[SourceFile]], Awaitable[list[str]]],
) -> list[str]:
    """Have `send` store many small files at a time, and then the large ones, each for itself; returns all MD5s."""
    found = [""] * len(sources)
    for batch in _batches(sources):
        for at, md5 in zip(batch, await send([sources[at] for at in batch]), strict=True):
            found[at] = md5
    for at, source in enumerate(sources):
        if not found[at]:
            found[at] = await put_large(store, source)
            moved(1, source.signature[0])
    return found


def _batches(sources: Sequence[SourceFile]) -> Iterator[list[int]]:
    """Yield the places of the files that are read whole, as many as are named together."""
    batch, size = list[int](), 0
    for at, source in enumerate(sources):
        if source.signature[0] > WHOLE:
            continue
        batch.append(at)
        size += source.signature[0]
        if len(batch) >= BATCH_FILES or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class FileBatch:
    """Some files on their way, over one link.

    Every method raises DatasetError, StoreError, SftpStatusError, SftpConnectionLost.
    """

    def __init__(
        self, link: SftpConnection, place: SftpRoot, publisher: SftpPublisher, flusher: SftpSyncer, named: set[bytes]
    ) -> None:
        """Store in `place`; `named`: keys that were stored before, to which this batch's are added."""
        self._link, self._place, self._publisher, self._flusher = link, place, publisher, flusher
        #: What is written aside: the key that each gets.
        self._aside: dict[bytes, bytes] = {}
        self._durable = True
        #: Keys that were stored, and those on their way: equal files travel once.
        self._named, self._keys = named, set(named)

    async def store(self, sources: Sequence[SourceFile], moved: Moved) -> list[str]:
        """Store all and return their MD5s once they and their names would survive a loss of power."""
        self._durable = not await self._flusher.together()
        calls = await self._link.files()
        found = [""] * len(sources)

        async def put(at: int) -> None:
            found[at] = await self._write(sources[at])

        try:
            await run_in_lanes(range(len(sources)), put, OPEN)
            if not self._durable:
                await self._flusher.settle(self._aside)
            await self._name(calls)
            await self._publisher.settle(self._aside.values())
            self._named |= self._keys
        except BaseException:
            for aside in self._aside:
                calls.forget(aside)
            raise
        for source in sources:
            moved(1, source.signature[0])
        return found

    async def _name(self, calls: SftpRequests) -> None:
        """Give all their names: first one in each directory, which is made where it is missing."""
        first = {key.rpartition(b"/")[0]: aside for aside, key in self._aside.items()}
        await run_all(self._publisher.replace(calls, aside, self._aside[aside]) for aside in first.values())
        rest = self._aside.keys() - first.values()
        await asyncio.gather(*(calls.replace(aside, self._aside[aside]) for aside in rest))

    async def _write(self, source: SourceFile) -> str:
        if source.signature[0] <= _SMALL_BYTES:
            md5, data = read_whole(source)
        else:
            md5, data = await asyncio.to_thread(read_whole, source)
        if (key := self._place.path(spell_md5_key(md5))) not in self._keys:
            self._keys.add(key)
            calls = await self._link.files()
            self._aside[await self._publisher.aside(calls, (data,), durable=self._durable, stamp=False)] = key
        return md5
