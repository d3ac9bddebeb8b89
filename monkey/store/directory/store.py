# ruff: noqa: PTH105
# Paths are plain strings here: pathlib costs as much as the system calls.
"""The store in a directory: a local disk, or NFS. Crash-safe by shape: written aside, then linked or renamed.

`tmp/` below the root holds what is being written; every other file is whole. Operations that are not durable run in
the calling thread, with as few system calls as possible; durable ones share their syncs (`commit.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Sequence
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

from monkey.errors import KeyMissing
from monkey.removal import remove_file
from monkey.store.content.objects import Moved, SourceFile
from monkey.store.directory.commit import GroupCommitter, PendingWrite, remove_aside
from monkey.store.directory.listing import list_entries, walk_keys
from monkey.store.directory.publish import copy_bytes, open_aside, publish_aside, remove_stale, write_aside
from monkey.store.directory.root import READ, DirectoryRoot
from monkey.store.keys import check_key, check_prefix
from monkey.store.object_limits import check_size, refuse_large
from monkey.store.replacement_stamp import stamp_file
from monkey.store.store_port import ListedObject, Store

if TYPE_CHECKING:
    from monkey.store.content.hash_workers import HashWorkers

#: Files up to this many bytes are copied in the calling thread: a hop to another one costs more.
_SMALL_BYTES = 256 * 1024

#: Directories whose freshly written, not yet durable entries are remembered.
LOOSE = 10_000


class DirectoryStore(Store):
    """A store in a directory; made by `monkey.store.open.open_store`."""

    poll = 0.25

    def __init__(self, root: Path, store_id: str | None) -> None:
        """Expect the store `store_id` in the absolute path `root` (None: it is being created, and has no `format`)."""
        self.url, self.id = str(root), store_id or ""
        #: Where it is, for those who look at its files themselves.
        self.place = self._place = DirectoryRoot(self.url, store_id)
        # While a store is created, one write follows the other, and nobody else's is to come.
        self._committer = GroupCommitter(self._place) if store_id else GroupCommitter(self._place, gather=0.0)
        #: By directory: entries that were written without waiting for the disk.
        self._loose: dict[str, list[str]] = {}

    async def create(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        """See `Store.create`. A durable entry makes durable, too, what this client wrote beside it before."""
        directory = check_key(key).rpartition("/")[0]
        refuse_large(key, data)
        if durable:
            return await self._commit(key, data, directory)
        if not self._write(key, data, replace=False):
            return False
        if len(self._loose) > LOOSE:
            self._loose.clear()  # by now the kernel has written the most of it
        self._loose.setdefault(directory, []).append(key)
        return True

    async def _commit(self, key: str, data: bytes, directory: str) -> bool:
        before = self._loose.pop(directory, [])
        try:
            return await self._committer.submit(PendingWrite(key, data, before=before))
        except BaseException:
            self._loose.setdefault(directory, []).extend(before)
            raise

    async def put(self, key: str, data: bytes) -> None:
        """See `Store.put`."""
        refuse_large(check_key(key), data)
        self._write(key, data, replace=True)

    def _write(self, key: str, data: bytes, *, replace: bool) -> bool:
        temp = self._place.temp()
        try:
            with self._place.enter() as inside:
                fd = write_aside(inside, temp, data)
                left = True
                try:
                    try:
                        if replace:
                            stamp_file(fd)
                        written = os.fstat(fd)
                    finally:
                        os.close(fd)  # NFS sends the bytes, and says whether they fit, no later than now
                    published = publish_aside(inside, temp, key, replace=replace, written=written)
                    left = not replace
                finally:
                    if left:
                        inside.remove_aside(temp)
                return published
        except OSError as exc:
            raise self._place.translate(exc, key) from exc

    async def get(self, key: str) -> bytes:
        """See `Store.get`."""
        check_key(key)
        try:
            return _read(self._open(key), key)
        except OSError as exc:
            raise self._no(exc, key) from exc

    def _open(self, key: str) -> int:
        """Return a descriptor of an object. Raises OSError, StoreMissing."""
        with self._place.enter(check=False) as inside:
            return inside.open(key, READ)

    def _no(self, exc: OSError, key: str) -> Exception:
        """Return the error for a key that cannot be read: missing alone, or the whole store?"""
        if isinstance(exc, FileNotFoundError | NotADirectoryError | IsADirectoryError):
            self._place.check()
            return KeyMissing(key)
        return self._place.translate(exc, key)

    async def list(self, prefix: str, after: str = "") -> list[ListedObject]:
        """See `Store.list`."""
        directory = check_prefix(prefix)
        try:
            with self._place.enter() as inside:
                return sorted(walk_keys(inside, directory, prefix, after))
        except OSError as exc:
            raise self._place.translate(exc, prefix) from exc

    async def list_directories(self, prefix: str) -> Sequence[str]:
        """See `Store.list_directories`; one that is empty counts."""
        directory = check_prefix(prefix)
        try:
            with self._place.enter() as inside, list_entries(inside, directory) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return ()
        except OSError as exc:
            raise self._place.translate(exc, prefix) from exc

    async def delete(self, key: str) -> None:
        """See `Store.delete`."""
        check_key(key)
        try:
            with self._place.enter(check=False) as inside:
                at, name = inside.reach(key)
                if not remove_file(name, at):
                    self._place.check()
        except (FileNotFoundError, NotADirectoryError):
            self._place.check()
        except OSError as exc:
            raise self._place.translate(exc, key) from exc

    async def put_file(self, key: str, path: Path) -> None:
        """See `Store.put_file`; an OSError of `path` itself passes through."""
        write = PendingWrite(check_key(key), replace=True)
        source = FileIO(path)  # closed by the thread, which may outlive us
        size = os.fstat(source.fileno()).st_size
        await _hop(size, lambda: self._copy_in(write, source), lambda: remove_aside(self._place, write))
        await self._committer.submit(write)

    def _copy_in(self, write: PendingWrite, source: FileIO) -> None:
        with source:
            try:
                temp = self._place.temp()
                with self._place.enter() as inside:
                    write.fd = open_aside(inside, temp)
                write.temp = temp
                copy_bytes(source.fileno(), write.fd)
                stamp_file(write.fd)
            except BaseException as exc:
                remove_aside(self._place, write)
                if isinstance(exc, OSError):
                    raise self._place.translate(exc, write.key) from exc
                raise

    async def put_contents(
        self,
        sources: Sequence[SourceFile],
        moved: Moved,
        crew: HashWorkers | None = None,
        hashed: Callable[[Sequence[str]], None] | None = None,
        sent: set[str] | None = None,
    ) -> Sequence[str]:
        """See `Store.put_contents`. `crew`: workers that were started already.

        `hashed` receives the MD5s once all are known, in another thread, while the disk is waited for. `sent` receives
        those of objects that were not here before.
        """
        from monkey.store.directory.bulk import BulkWrite  # what it imports takes a while, and agents never need it

        bulk = BulkWrite(self._place, sources, moved, crew, hashed, sent)
        inner = asyncio.ensure_future(asyncio.to_thread(bulk.run))
        try:
            return await asyncio.shield(inner)
        except asyncio.CancelledError:
            bulk.interrupt()
            await asyncio.wait([inner])
            raise

    async def get_file(self, key: str, path: Path) -> None:
        """See `Store.get_file`; an OSError of `path` itself passes through."""
        aside = f"{path.parent}/.{path.name[:100]}.{secrets.token_hex(6)}.part"
        check_key(key)
        try:
            fd = self._open(key)
        except OSError as exc:
            raise self._no(exc, key) from exc
        found = os.fstat(fd)
        if stat.S_ISDIR(found.st_mode):
            os.close(fd)
            raise KeyMissing(key)
        source = FileIO(fd)  # closed by the thread, which may outlive us
        try:
            await _hop(found.st_size, lambda: _copy_out(source, aside), lambda: _drop(aside))
        except OSError as exc:
            raise exc if exc.filename == aside else self._no(exc, key) from exc
        os.replace(aside, path)

    async def remove_stale(self) -> None:
        """See `Store.remove_stale`."""
        await asyncio.to_thread(remove_stale, self._place)

    async def close(self) -> None:
        """See `Store.close`."""
        await self._committer.close()


def _read(fd: int, key: str) -> bytes:
    try:
        size = os.fstat(fd).st_size
        check_size(key, size)
        data = os.read(fd, size)
        while len(data) < size and (more := os.read(fd, size - len(data))):
            data += more  # one read moves at most 2 GiB
        return data
    finally:
        os.close(fd)


def _copy_out(source: FileIO, aside: str) -> None:
    with source:
        target = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            copy_bytes(source.fileno(), target)
        except OSError as exc:
            _drop(aside)
            raise OSError(exc.errno, exc.strerror, aside) from exc
        finally:
            os.close(target)


def _drop(aside: str) -> None:
    with contextlib.suppress(OSError):
        remove_file(aside)


async def _hop(size: int, work: Callable[[], None], undo: Callable[[], None]) -> None:
    """Do `work`, which moves `size` bytes: in another thread where that is long; if cancelled meanwhile, undo it."""
    if size <= _SMALL_BYTES:
        work()
        return
    inner = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(inner)
    except asyncio.CancelledError:
        inner.add_done_callback(lambda done: undo() if done.exception() is None else None)
        raise
