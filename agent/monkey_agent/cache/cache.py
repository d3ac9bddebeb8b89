# Paths are plain strings here: a job that uses what is cached takes and returns a right to it.
"""The machine's cache for all agents of a user (code, environments, datasets), and the rights to use its entries.

An entry is a path below the cache. Beside it lies NAME.use: each user of the entry holds a shared lock on it. Its time
of change is the time of the last use. The maker of the entry holds a lock on NAME.lock. A lock ends with the process
that holds it, however that ends, so nothing has to be cleared up after a kill -9.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import math
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType

from monkey.untrusted_files import hold_below
from monkey_agent.cache import eviction

#: Seconds between looks whether a lock is free.
_POLL_SECONDS = 0.05
#: Part of the disk that the cache may fill where no cap is set.
_DISK_SHARE = 0.5
#: Free bytes below which a disk counts as full: a program that fills it leaves less.
LITTLE = 32 << 20
_FULL = (errno.ENOSPC, errno.EDQUOT)


class CacheUse:
    """The right to use an entry: it is not removed while this is held."""

    __slots__ = ("_fd", "_file")

    def __init__(self, file: str, fd: int) -> None:
        """Hold the locked descriptor `fd` of `file`."""
        self._file, self._fd = file, fd

    def close(self) -> None:
        """Give the right back, and note that the entry was used until now."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.utime(self._fd)
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> CacheUse:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Cache:
    """The cache of this machine and user."""

    def __init__(self, root: Path, most: int | None = None) -> None:
        """Keep entries in `root`, and at most `most` bytes of unused ones (default: half of the disk)."""
        self.root, self._most = root, most
        self._trimming: asyncio.Task[bool] | None = None

    async def use(self, entry: Path) -> CacheUse:
        """Return the right to use an entry, whether it exists yet or not. Raises OSError, also for a link above it."""
        file = f"{entry}.use"
        fd = await self._acquire(file, fcntl.LOCK_SH)  # waits only where it is just being removed
        os.utime(fd)
        return CacheUse(file, fd)

    @asynccontextmanager
    async def making(self, entry: Path, within: float = math.inf) -> AsyncIterator[int]:
        """Hold the lock to make an entry, and yield its descriptor; a process that gets a copy holds the lock, too.

        The caller has the right to use the entry. Raises OSError, also where others make it for more than `within`
        seconds.
        """
        fd = await self._acquire(f"{entry}.lock", fcntl.LOCK_EX, within)
        try:
            yield fd
        finally:
            os.close(fd)

    async def _acquire(self, file: str, kind: int, within: float = math.inf) -> int:
        """Lock a file beside an entry. Raises OSError, also for a link above it."""
        with hold_below(self.root, str(Path(file).parent.relative_to(self.root)), make=True):
            until = time.monotonic() + within
            fd = try_lock(file, kind)
            while fd < 0:
                if time.monotonic() > until:
                    raise OSError(errno.EBUSY, f"another process has been at it for {within:.0f} s, and holds", file)
                await asyncio.sleep(_POLL_SECONDS)
                fd = try_lock(file, kind)
            return fd

    async def trim(self, *, urgent: bool = False) -> bool:
        """Remove the least recently used entries until all fit the cap; return whether any was removed.

        `urgent`: the disk is full, so at least one entry is removed. Entries in use stay, however large.
        """
        return await asyncio.to_thread(eviction.trim_cache, str(self.root), self.most(), urgent=urgent)

    def trim_soon(self) -> None:
        """Trim in the background, so that the job that needs the new entry does not wait."""
        if self._trimming is None or self._trimming.done():
            self._trimming = asyncio.get_running_loop().create_task(self.trim())

    async def settle(self) -> None:
        """Wait until the trim that `trim_soon` started is done."""
        if self._trimming is not None:
            await asyncio.gather(self._trimming, return_exceptions=True)

    async def with_room(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do `work`; where the disk is full, trim and try again, as long as entries can be removed. Raises OSError."""
        while True:
            try:
                return await work()
            except OSError as exc:
                if exc.errno not in _FULL or not await self.trim(urgent=True):
                    raise

    def is_full(self) -> bool:
        """Return whether the disk has so little room left that a failure may be due to that."""
        disk = os.statvfs(self.root)
        return disk.f_bavail * disk.f_frsize < LITTLE or (disk.f_files > 0 and not disk.f_favail)

    def most(self) -> int:
        """Return the cap, in bytes."""
        if self._most is not None:
            return self._most
        disk = os.statvfs(self.root)
        return int(disk.f_frsize * disk.f_blocks * _DISK_SHARE)

    @staticmethod
    def note(entry: Path, besides: int = 0) -> None:
        """Record the disk usage of an entry that the caller has the right to use, and bytes that it takes elsewhere."""
        size = eviction.measure_disk_usage(str(entry)) + besides
        with Path(f"{entry}.use").open("r+b") as file:
            file.write(b"%-20d\n" % size)

    def trash(self, entry: Path) -> None:
        """Remove an entry at once; its disk space is freed later."""
        eviction.move_to_trash(str(self.root), str(entry))


def try_lock(file: str, kind: int) -> int:
    """Return a descriptor of `file` with a lock of this kind; -1 where another process holds a conflicting lock.

    An entry is removed with its lock files: so a lock on a file that was removed meanwhile is taken again.
    """
    while True:
        fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            if _is_at(fd, file):
                return fd
        except BlockingIOError:
            os.close(fd)
            return -1
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def _is_at(fd: int, file: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(file))  # noqa: PTH116
    except FileNotFoundError:
        return False
