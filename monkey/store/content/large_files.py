# Paths are plain strings here, as in all of the bulk path.
"""Hashing and copying large files: what is written is what is hashed, in another thread meanwhile."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from monkey.atomic_write import write_all
from monkey.store.content.hash_worker import CHANGED, CHUNK_BYTES, SPECIAL, read_signature
from monkey.store.content.objects import SourceFile, make_refusal

#: Bytes that are written at once, and how many such steps the hash may be ahead.
STEP, _AHEAD = 2 * CHUNK_BYTES, 4

#: Bytes that stay in the page cache, of what was written last.
CACHED = 64 * CHUNK_BYTES

#: Linux's FICLONE.
_CLONE = 0x40049409

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK

#: Is told how many more objects (none) and bytes were moved.
Moved = Callable[[int, int], None]


def hash_large_file(source: SourceFile, moved: Moved) -> str:
    """Return the file's MD5. Raises DatasetError where it cannot be read, or is not what it was."""
    return _with(source, lambda fd: _digest(fd, source.signature[0], lambda count: moved(0, count)))


def copy_hashed(source: SourceFile, target: int, moved: Moved) -> str:
    """Copy the file to the new file whose descriptor is `target`, and return the copy's MD5.

    Raises DatasetError for the source, OSError for the copy.
    """
    return _with(source, lambda fd: _copied(fd, target, source.signature[0], lambda count: moved(0, count)))


def _with(source: SourceFile, work: Callable[[int], str]) -> str:
    """Do the work with the open file, which must be the same before and afterwards."""
    try:
        fd = os.open(source.path, _READ)
    except OSError as exc:
        raise make_refusal(source, f"system: {exc.errno}") from exc
    try:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            raise make_refusal(source, SPECIAL)
        if before.st_size != source.signature[0] or (read_signature(before) != source.signature and not source.md5):
            raise make_refusal(source, CHANGED)
        found = work(fd)
        if found != source.md5 if source.md5 else read_signature(os.fstat(fd)) != source.signature:
            raise make_refusal(source, CHANGED)
        return found
    finally:
        os.close(fd)


def _digest(fd: int, size: int, moved: Callable[[int], None]) -> str:
    """Return the MD5 of the file's first `size` bytes; "" where it is shorter."""
    digest = hashlib.md5(usedforsecurity=False)
    buffer, at = bytearray(min(CHUNK_BYTES, size)), 0
    while at < size:
        view = memoryview(buffer)[: size - at]
        count = os.preadv(fd, [view], at)
        if not count:
            return ""
        digest.update(view[:count])
        at += count
        moved(count)
    return digest.hexdigest()


def _copied(fd: int, target: int, size: int, moved: Callable[[int], None]) -> str:
    """Copy the file's first `size` bytes; returns their MD5, "" where it is shorter."""
    if _cloned(fd, target):
        return _digest(target, size, moved) if os.fstat(target).st_size == size else ""
    digest, at = hashlib.md5(usedforsecurity=False), 0
    with ThreadPoolExecutor(1, "monkey-writer") as writer:
        written: deque[Future[bytearray]] = deque()
        while at < size:
            buffer = written.popleft().result() if len(written) == _AHEAD else bytearray(min(STEP, size))
            view = memoryview(buffer)[: size - at]
            count = os.preadv(fd, [view], at)
            if not count:
                return ""
            written.append(writer.submit(_write, target, buffer, count, at))
            digest.update(view[:count])
            at += count
            moved(count)
        for one in written:
            one.result()
    return digest.hexdigest()


def _cloned(fd: int, target: int) -> bool:
    """Let the file system take over all bytes by reference, where it can."""
    try:
        fcntl.ioctl(target, _CLONE, fd)
    except OSError:
        return False
    return True


def _write(target: int, buffer: bytearray, count: int, at: int) -> bytearray:
    """Append what was read to `at`; returns the buffer."""
    write_all(target, memoryview(buffer)[:count])
    if sys.platform == "linux":
        # On its way to the disk now, rather than all of it with the sync; what arrived leaves its memory to the next.
        os.posix_fadvise(target, at, count, os.POSIX_FADV_DONTNEED)
        if at > CACHED:
            os.posix_fadvise(target, 0, at - CACHED, os.POSIX_FADV_DONTNEED)
    return buffer
