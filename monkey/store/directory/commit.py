# ruff: noqa: PTH120
# Paths are plain strings here: pathlib costs as much as the system calls.
"""Group commit: durable writes that wait together share their syncs.

One thread takes all writes that wait. It writes them aside, syncs their bytes, links or renames them into place, syncs
the directories, and answers all. Writes that arrive meanwhile are the next batch. This order makes a loss of power
harmless: if an entry is visible, its bytes are on disk. So are the files that this client wrote beside it before.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from monkey.errors import MonkeyError, StoreUnavailable
from monkey.store.directory.disk_sync import DirectorySyncer
from monkey.store.directory.open_root import OpenRoot
from monkey.store.directory.publish import publish_aside, write_aside
from monkey.store.directory.root import READ, DirectoryRoot

#: Largest number of writes in one batch: each holds a descriptor or two.
_MAX_BATCH = 128

#: Seconds to wait for more writes if the last batch ended within that time. No slot waits for an end to be durable.
#: With two writers that take turns, batches of one or two made four syncs a job. A write after a pause does not wait.
GATHER = 0.01

#: Number of directories that are remembered as synced.
SETTLED = 10_000


def _future() -> asyncio.Future[bool]:
    return asyncio.get_running_loop().create_future()


@dataclass(eq=False, slots=True)
class PendingWrite:
    """A durable write that waits for its commit."""

    key: str
    data: bytes = b""
    #: Whether to replace a file that is there (put_file), or to leave it (create).
    replace: bool = False
    #: The name of the file aside, and its open descriptor, once there is one.
    temp: str = ""
    fd: int = -1
    #: Keys published beside it that may not be on disk yet.
    before: Sequence[str] = ()
    done: asyncio.Future[bool] = field(default_factory=_future)
    published: bool = False
    error: BaseException | None = None


class GroupCommitter:
    """The thread that commits writes; it starts with the first one."""

    def __init__(self, place: DirectoryRoot, gather: float = GATHER) -> None:
        """Commit into `place`; `gather`: as `GATHER`."""
        self._place, self._wait = place, gather
        self._queue: queue.SimpleQueue[PendingWrite | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._syncer = DirectorySyncer()
        #: When the last batch was done.
        self._done = float("-inf")
        #: Directories whose own entries, up to the root, are on disk.
        self._settled: set[str] = set()

    async def submit(self, write: PendingWrite) -> bool:
        """Commit `write`; once it would survive a loss of power, return whether it was published.

        False means that something was there. Raises StoreError.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="monkey-commit", daemon=True)
            self._thread.start()
        self._queue.put(write)
        return await write.done

    async def close(self) -> None:
        """Commit the writes that wait, and end the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            await asyncio.to_thread(thread.join)

    def _run(self) -> None:
        while batch := self._gather():
            try:
                self._commit(batch)
            except BaseException as exc:  # a bug must not leave anybody waiting for ever
                for write in batch:
                    write.error = write.error or exc
            self._done = time.monotonic()
            _answer(batch)

    def _gather(self) -> list[PendingWrite]:
        """Return the writes that wait, at least one; none at the end."""
        first = self._queue.get()
        if first is None:
            return []
        batch = [first]
        self._take(batch)
        if time.monotonic() - self._done < self._wait:
            time.sleep(self._wait)
            self._take(batch)
        return batch

    def _take(self, batch: list[PendingWrite]) -> None:
        """Add the writes that wait to `batch`, up to its largest size."""
        with contextlib.suppress(queue.Empty):
            while len(batch) < _MAX_BATCH:
                more = self._queue.get_nowait()
                if more is None:
                    self._queue.put(None)  # seen again when this batch is done
                    break
                batch.append(more)

    def _commit(self, batch: Sequence[PendingWrite]) -> None:
        try:
            with self._place.enter() as inside:
                self._step(batch, partial(self._write, inside))
                self._sync_files(inside, _fine(batch))
                self._step(batch, partial(self._publish, inside))
            self._sync_directories(_fine(batch))
        finally:
            for write in batch:
                remove_aside(self._place, write)

    def _step(self, batch: Sequence[PendingWrite], step: Callable[[PendingWrite], None]) -> None:
        """Do `step` for all writes without an error; one that fails is left out of the next steps."""
        for write in _fine(batch):
            try:
                step(write)
            except OSError as exc:
                write.error = self._place.translate(exc, write.key)
            except MonkeyError as exc:
                write.error = exc

    def _write(self, inside: OpenRoot, write: PendingWrite) -> None:
        if write.fd < 0:
            temp = self._place.temp()
            write.fd = write_aside(inside, temp, write.data)
            write.temp = temp

    def _publish(self, inside: OpenRoot, write: PendingWrite) -> None:
        written = os.fstat(write.fd)
        write.published = publish_aside(inside, write.temp, write.key, replace=write.replace, written=written)
        if write.replace:
            write.temp = ""

    def _sync_files(self, inside: OpenRoot, batch: Sequence[PendingWrite]) -> None:
        beside = {key: None for write in batch for key in write.before}
        before = [fd for key in beside if (fd := _reopen(inside, key)) >= 0]
        try:
            failed = self._syncer.files([write.fd for write in batch] + before)
        finally:
            for fd in before:
                os.close(fd)
        for write in batch:
            if write.fd in failed:
                write.error = self._place.translate(failed[write.fd], write.key)

    def _sync_directories(self, batch: Sequence[PendingWrite]) -> None:
        """Sync the directories of the batch: of what it published, and what others published first under its keys."""
        if not batch:
            return
        chains = [list(self._chain(os.path.dirname(self._place.path(write.key)))) for write in batch]
        wanted = {path: None for chain in chains for path in chain}
        failed = self._syncer.directories(list(wanted), batch[0].fd)
        for write, chain in zip(batch, chains, strict=True):
            if trouble := next((failed[path] for path in chain if path in failed), None):
                # It can be seen and may yet be lost: not a refusal, which would promise that nothing was written.
                write.error = StoreUnavailable(f"{write.key!r} may be written, but could not be synced: {trouble}")
        if not failed:
            self._settle(wanted)

    def _chain(self, directory: str) -> Iterator[str]:
        """Yield the directories to sync for an entry in `directory`: itself, and those above that are not settled."""
        yield directory
        while directory not in self._settled and len(directory) > len(self._place.root):
            directory = os.path.dirname(directory)
            yield directory

    def _settle(self, directories: dict[str, None]) -> None:
        if len(self._settled) > SETTLED:
            self._settled.clear()
        self._settled.update(directories)


def _fine(batch: Sequence[PendingWrite]) -> list[PendingWrite]:
    return [write for write in batch if write.error is None]


def _reopen(inside: OpenRoot, key: str) -> int:
    try:
        return inside.open(key, READ)
    except OSError:
        return -1  # gone, and so nothing that could be torn


def remove_aside(place: DirectoryRoot, write: PendingWrite) -> None:
    """Remove the write's file aside; it is closed before, or NFS would keep it under another name."""
    if write.fd >= 0:
        with contextlib.suppress(OSError):
            os.close(write.fd)
        write.fd = -1
    if write.temp:
        place.remove_aside(write.temp)


def _answer(batch: Sequence[PendingWrite]) -> None:
    """Give the outcomes to the event loops that wait for them."""
    loops: dict[asyncio.AbstractEventLoop, list[PendingWrite]] = {}
    for write in batch:
        loops.setdefault(write.done.get_loop(), []).append(write)
    for loop, writes in loops.items():
        with contextlib.suppress(RuntimeError):  # that loop was closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, writes)


def _settle(writes: Sequence[PendingWrite]) -> None:
    for write in writes:
        if write.done.done():
            continue  # cancelled
        if write.error is not None:
            write.done.set_exception(write.error)
        else:
            write.done.set_result(write.published)
