"""The store in a directory on an SSH host; its files are laid out as those of `monkey.store.directory.store`.

An agent on that host may open the same directory as a directory store, at the same time. `tmp/` has the files in
writing. Keys are created by link(2), and replaced by rename(2).
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from monkey.errors import KeyMissing, StoreRefused
from monkey.store.content.objects import Moved, SourceFile
from monkey.store.format import FORMAT
from monkey.store.keys import check_prefix
from monkey.store.object_limits import refuse_large
from monkey.store.sftp.bulk import FileBatch, send_in_batches
from monkey.store.sftp.disk_sync import SYNC_CONNECTIONS, SftpSyncer
from monkey.store.sftp.listing import SftpListing, read_entries
from monkey.store.sftp.publish import SftpPublisher
from monkey.store.sftp.root import SftpRoot
from monkey.store.sftp.url import SftpTarget
from monkey.store.sftp.wire import sftp_protocol
from monkey.store.sftp.wire.connect import ConnectTimeouts
from monkey.store.sftp.wire.reconnect import ReconnectingSftp
from monkey.store.sftp.wire.sftp_connection import SftpConnection
from monkey.store.sftp.wire.sftp_protocol import SftpStatusError
from monkey.store.sftp.wire.sftp_requests import SftpRequests, is_directory
from monkey.store.sftp.wire.transfers import read_chunks, read_remote, save_remote
from monkey.store.store_port import ListedObject, Store

_T = TypeVar("_T")

#: Largest number of calls under way, and of local files in reading, at the same time; further ones wait. Each holds a
#: file open on the host, which may allow no more than 256.
_CONCURRENCY, FILES_AT_ONCE = 96, 64

#: Largest number of files that wait for the remote disk at the same time.
_MAX_OPEN_FILES = 1024

#: Number of directories whose new, not yet durable entries are remembered.
LOOSE = 10_000


class SftpStore(Store):
    """A store on an SSH host; made by `monkey.store.open.open_store`."""

    poll = 0.5

    def __init__(self, target: SftpTarget, patience: ConnectTimeouts | None = None) -> None:
        """Expect a store at `target`; call `connect` first."""
        self.url = target.url
        self._target = target
        self._reach = ReconnectingSftp(target, patience or ConnectTimeouts(), self._arrive)
        self._place: SftpRoot
        self._flusher: SftpSyncer
        self._publisher: SftpPublisher
        self._slots = asyncio.Semaphore(_CONCURRENCY)
        self._files = asyncio.Semaphore(_MAX_OPEN_FILES)
        self._files_open = asyncio.Semaphore(FILES_AT_ONCE)
        self._sending = 0
        #: Directory to its entries that were written without a wait for the disk.
        self._loose: dict[bytes, list[bytes]] = {}

    async def connect(self) -> None:
        """Connect, without a second try. Raises StoreError."""
        await self._reach.first()

    async def _arrive(self, link: SftpConnection) -> None:
        """Find the root on a new link, and check that it is the same store as before. Raises StoreError."""
        try:
            if not hasattr(self, "_place"):
                self._place = SftpRoot(self.url, await self._root(link.main))
            await self._place.check(link.main)
        except SftpStatusError as exc:
            raise StoreRefused(
                f"the store {self.url} cannot be read: {exc}", hint="give the user there rights to read and write"
            ) from exc
        self._flusher = SftpSyncer(link, self._place.root)
        self._publisher = SftpPublisher(self._place, self._flusher)

    async def _root(self, calls: SftpRequests) -> bytes:
        directory = self._target.directory
        if not directory.startswith("~/"):
            return directory.encode()
        return (await calls.realpath(b".")).rstrip(b"/") + directory[1:].encode()

    async def make_room(self, allowed: frozenset[str], *, make: bool = True) -> None:
        """Make the root directory if missing (`make`). Raises StoreRefused where strangers, not a store, are."""

        async def work(link: SftpConnection) -> list[str]:
            found = await (self._place.make_root(link.main) if make else self._place.names(link.main))
            return [] if FORMAT in found else sorted(set(found) - allowed)

        if strangers := await self._do("", work):
            raise StoreRefused(
                f"expected a store or an empty directory at {self.url}, found a directory with {strangers[0]!r} in it",
                hint="name a new or empty directory with 'store:' in monkey.yaml; if a store was here, bring it back",
            )

    async def _do(
        self, key: str, work: Callable[[SftpConnection], Awaitable[_T]], again: Callable[[], bool] = lambda: True
    ) -> _T:
        """Do `work` on `key` over a living link, within the limit of calls; `again`: is another try safe?"""
        async with self._slots:
            return await self._reach.do(self._guarded(key, work), again)

    def _guarded(
        self, key: str, work: Callable[[SftpConnection], Awaitable[_T]]
    ) -> Callable[[SftpConnection], Awaitable[_T]]:
        """Return `work` with the server's errors translated to StoreError."""

        async def guarded(link: SftpConnection) -> _T:
            try:
                return await work(link)
            except SftpStatusError as exc:
                path = self._place.path(key) if key else self._place.root
                raise await self._place.explain(exc, link.main, key, path) from exc

        return guarded

    async def create(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        """See `Store.create`. A durable entry also makes durable what this client wrote beside it before."""
        target = self._place.path(key)
        refuse_large(key, data)
        directory = target.rpartition(b"/")[0]
        before = self._loose.pop(directory, []) if durable else []
        doubt = False

        async def work(link: SftpConnection) -> bool:
            nonlocal doubt
            temp = await self._publisher.aside(link.main, (data,), durable=durable, stamp=False)
            try:
                if before:
                    await self._flusher.settle(before)
                doubt = True
                won = await self._publisher.link(link.main, temp, target)
            finally:
                link.main.forget(temp)
            if durable:
                await self._publisher.settle((target,))
            return won

        try:
            won = await self._do(key, work, lambda: not doubt)
        except BaseException:
            self._note(directory, before)
            raise
        if won and not durable:
            self._note(directory, [target])
        return won

    def _note(self, directory: bytes, entries: list[bytes]) -> None:
        if len(self._loose) > LOOSE:
            self._loose.clear()  # by now the kernel there has written the most of it
        if entries:
            self._loose.setdefault(directory, []).extend(entries)

    async def remove_stale(self) -> None:
        """See `Store.remove_stale`."""

        async def work(link: SftpConnection) -> None:
            await self._place.remove_stale(link.main)

        await self._do("tmp", work)

    async def put(self, key: str, data: bytes) -> None:
        """See `Store.put`."""
        target = self._place.path(key)
        refuse_large(key, data)

        async def work(link: SftpConnection) -> None:
            temp = await self._publisher.aside(link.main, (data,), durable=False, stamp=True)
            await self._publisher.replace(link.main, temp, target)

        await self._do(key, work)

    async def get(self, key: str) -> bytes:
        """See `Store.get`."""
        path = self._place.path(key)

        async def work(link: SftpConnection) -> bytes:
            found = await read_remote(link.main, path, key)
            if found is None:
                await self._place.check(link.main)
                raise KeyMissing(key)
            if key == FORMAT:
                await self._place.check(link.main)  # who began the store learns here which one it is
            return found

        return await self._do(key, work)

    async def list(self, prefix: str, after: str = "") -> list[ListedObject]:
        """See `Store.list`."""
        directory = check_prefix(prefix)

        async def work(link: SftpConnection) -> list[ListedObject]:
            walk = SftpListing(link.main, prefix, after)
            await walk.go(self._place.below(directory), directory)
            if not walk.items:
                await self._place.check(link.main)
            return sorted(walk.items)

        return await self._do(directory, work)

    async def list_directories(self, prefix: str) -> Sequence[str]:
        """See `Store.list_directories`; one that is empty counts."""
        directory = check_prefix(prefix)

        async def work(link: SftpConnection) -> Sequence[str]:
            found = await read_entries(link.main, self._place.below(directory))
            return sorted(name.decode(errors="replace") for name, attrs in found if is_directory(attrs))

        return await self._do(directory, work)

    async def delete(self, key: str) -> None:
        """See `Store.delete`."""
        path = self._place.path(key)

        async def work(link: SftpConnection) -> None:
            await self._place.refuse_links(link.main, path)
            try:
                await link.main.remove(path)
            except SftpStatusError as exc:
                if exc.code != sftp_protocol.NO_SUCH_FILE:
                    raise
                await self._place.check(link.main)

        await self._do(key, work)

    async def put_file(self, key: str, path: Path) -> None:
        """See `Store.put_file`; an OSError of `path` itself passes through. Many at once share their syncs."""
        target = self._place.path(key)

        async def work(link: SftpConnection) -> None:
            calls = await link.files()
            temp = await self._copy_in(calls, path)
            await self._publisher.replace(calls, temp, target)
            await self._publisher.settle((target,))

        self._sending += 1
        try:
            async with self._files:
                await self._reach.do(self._guarded(key, work))
        finally:
            self._sending -= 1

    async def _copy_in(self, calls: SftpRequests, path: Path) -> bytes:
        """Return the path of a new remote file aside, on disk, with the bytes of the local file `path`."""
        together = self._sending > SYNC_CONNECTIONS and await self._flusher.together()
        async with self._files_open:
            with path.open("rb", buffering=0) as source:
                temp = await self._publisher.aside(
                    calls, read_chunks(source.fileno()), durable=not together, stamp=True
                )
        if together:
            try:
                await self._flusher.settle([temp])
            except BaseException:
                calls.forget(temp)
                raise
        return temp

    async def put_contents(self, sources: Sequence[SourceFile], moved: Moved) -> Sequence[str]:
        """See `Store.put_contents`."""
        named: set[bytes] = set()

        async def send(some: Sequence[SourceFile]) -> list[str]:
            async def work(link: SftpConnection) -> list[str]:
                return await FileBatch(link, self._place, self._publisher, self._flusher, named).store(some, moved)

            return await self._reach.do(self._guarded("", work))

        return await send_in_batches(self, sources, moved, send)

    async def get_file(self, key: str, path: Path) -> None:
        """See `Store.get_file`; an OSError of `path` itself passes through."""
        source = self._place.path(key)

        async def work(link: SftpConnection) -> None:
            aside = f"{path.parent}/.{path.name[:100]}.{secrets.token_hex(6)}.part"
            calls = await link.files()
            try:
                handle = await calls.open(source)
            except SftpStatusError as exc:
                raise await self._missing(exc, calls, key) from exc
            try:
                if not await save_remote(calls, handle, aside):
                    raise KeyMissing(key)
            finally:
                calls.close(handle)
            os.replace(aside, path)  # noqa: PTH105

        async with self._files_open:
            await self._reach.do(self._guarded(key, work))

    async def _missing(self, exc: SftpStatusError, calls: SftpRequests, key: str) -> Exception:
        if exc.code != sftp_protocol.NO_SUCH_FILE:
            return exc
        await self._place.check(calls)
        return KeyMissing(key)

    async def close(self) -> None:
        """See `Store.close`."""
        await self._reach.close()
