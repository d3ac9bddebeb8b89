# ruff: noqa: PTH103
# Paths are plain strings here: a job that uses what is cached takes and returns a right to it.
"""What this machine keeps for all agents of the user (code, environments, datasets), and the rights to use it.

An entry is a path below the cache. Beside it lies NAME.use: each user of the entry holds it locked (shared), and its
time of change says when that was last; NAME.lock is held by who makes the entry. Locks go with the process that holds
them, however it ends, so nothing has to be cleared up after a kill -9.
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

from monkey_agent.cache import eviction

#: Seconds between looks whether a lock is free.
_POLL_SECONDS = 0.05
#: Of the disk, the part that the cache may fill where nobody said otherwise.
_DISK_SHARE = 0.5
#: Bytes of a disk that are as good as none: programs that meet its end leave less.
LITTLE = 32 << 20
_FULL = (errno.ENOSPC, errno.EDQUOT)


class CacheUse:
    """The right to use an entry: it is not removed while this is held."""

    __slots__ = ("_fd", "_file")

    def __init__(self, file: str, fd: int) -> None:
        """Hold the locked descriptor `fd` of `file`."""
        self._file, self._fd = file, fd

    def close(self) -> None:
        """Give it back, and note that it was used until now."""
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
        """Keep everything in `root`, and at most `most` bytes of unused entries (default: half of the disk)."""
        self.root, self._most = root, most
        self._trimming: asyncio.Task[bool] | None = None

    async def use(self, entry: Path) -> CacheUse:
        """Return the right to use an entry, whether it is there yet or not. Raises OSError."""
        file = f"{entry}.use"
        fd = await _acquire(file, fcntl.LOCK_SH)  # waits only where it is just being removed
        os.utime(fd)
        return CacheUse(file, fd)

    @asynccontextmanager
    async def making(self, entry: Path, within: float = math.inf) -> AsyncIterator[int]:
        """Be the only one to make an entry, for as long as this process or one that was given the descriptor lives.

        The caller has the right to use it. Raises OSError, also where others make it for more than `within` seconds.
        """
        fd = await _acquire(f"{entry}.lock", fcntl.LOCK_EX, within)
        try:
            yield fd
        finally:
            os.close(fd)

    async def trim(self, *, urgent: bool = False) -> bool:
        """Remove what was used least recently, until all fits the cap; `urgent`: at least one thing, the disk is full.

        Says whether anything was removed. What is in use stays, whatever that takes.
        """
        return await asyncio.to_thread(eviction.trim_cache, str(self.root), self.most(), urgent=urgent)

    def trim_soon(self) -> None:
        """Trim in the background: the job that needs the new entry must not wait."""
        if self._trimming is None or self._trimming.done():
            self._trimming = asyncio.get_running_loop().create_task(self.trim())

    async def settle(self) -> None:
        """Wait until what `trim_soon` began is done."""
        if self._trimming is not None:
            await asyncio.gather(self._trimming, return_exceptions=True)

    async def with_room(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do `work`; where the disk is full, make room and do it again, as long as anything can go. Raises OSError."""
        while True:
            try:
                return await work()
            except OSError as exc:
                if exc.errno not in _FULL or not await self.trim(urgent=True):
                    raise

    def is_full(self) -> bool:
        """Say whether the disk has so little room left that what failed may have failed for that."""
        disk = os.statvfs(self.root)
        return disk.f_bavail * disk.f_frsize < LITTLE or (disk.f_files > 0 and not disk.f_favail)

    def most(self) -> int:
        """Return the cap, in bytes."""
        if self._most is not None:
            return self._most
        disk = os.statvfs(self.root)
        return int(disk.f_frsize * disk.f_blocks * _DISK_SHARE)

    @staticmethod
    def note(entry: Path) -> None:
        """Write down what an entry that one has the right to use takes of the disk."""
        size = eviction.disk_usage(str(entry))
        with Path(f"{entry}.use").open("r+b") as file:
            file.write(b"%-20d\n" % size)

    def trash(self, entry: Path) -> None:
        """Take an entry away at once; what it takes of the disk is given back later."""
        eviction.to_trash(str(self.root), str(entry))


async def _acquire(file: str, kind: int, within: float = math.inf) -> int:
    until = time.monotonic() + within
    while True:
        fd = try_lock(file, kind)
        if fd >= 0:
            return fd
        if time.monotonic() > until:
            raise OSError(errno.EBUSY, f"another process has been at it for {within:.0f} s, and holds", file)
        await asyncio.sleep(_POLL_SECONDS)


def try_lock(file: str, kind: int) -> int:
    """Return a descriptor of `file` that holds a lock of that kind, -1 where somebody holds it otherwise.

    An entry is removed with its lock files: one that was removed meanwhile protects nothing.
    """
    while True:
        fd = _open(file)
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


def _open(file: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(file, flags, 0o600)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(file), exist_ok=True)  # noqa: PTH120
        return os.open(file, flags, 0o600)


def _is_at(fd: int, file: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(file))  # noqa: PTH116
    except FileNotFoundError:
        return False
