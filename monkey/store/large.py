# Paths are plain strings here, as in all of the bulk path.
"""Hashing and copying large files: the copy is what is hashed, close behind the one who writes it."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Callable
from contextlib import suppress

from monkey.store.contents import Source, refused
from monkey.store.copier import CHANGED, CHUNK, SPECIAL, signature
from monkey.store.publish import write_all

#: Bytes that the writer is told to move at once, and by which it may be ahead: what lies between is in memory.
STEP = 8 * CHUNK

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC

#: Is told how many more objects (none) and bytes were moved.
Moved = Callable[[int, int], None]


def hashed(source: Source, moved: Moved) -> str:
    """Return the file's MD5. Raises DatasetError where it cannot be read, or is not what it was."""
    return _with(source, lambda fd: _digest(fd, source.signature[0], None, lambda count: moved(0, count)))


def copy_hashed(source: Source, aside: str, moved: Moved) -> str:
    """Copy the file to the new file `aside`, and return the copy's MD5.

    Raises DatasetError for the source, OSError for the copy; then there is none.
    """
    target = os.open(aside, _CREATE, 0o666)
    try:
        return _with(source, lambda fd: _copy_behind(source, fd, target, moved))
    except BaseException:
        os.unlink(aside)  # noqa: PTH108
        raise
    finally:
        os.close(target)


def _with(source: Source, work: Callable[[int], str]) -> str:
    """Do the work with the open file, which must be the same before and afterwards."""
    try:
        fd = os.open(source.path, _READ)
    except OSError as exc:
        raise refused(source, f"system: {exc.errno}") from exc
    try:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            raise refused(source, SPECIAL)
        if before.st_size != source.signature[0] or (signature(before) != source.signature and not source.md5):
            raise refused(source, CHANGED)
        found = work(fd)
        if found != source.md5 if source.md5 else signature(os.fstat(fd)) != source.signature:
            raise refused(source, CHANGED)
        return found
    finally:
        os.close(fd)


def _digest(fd: int, size: int, ready: Callable[[int], int] | None, moved: Callable[[int], None]) -> str:
    """Return the MD5 of the file's first `size` bytes; `ready(at)` waits until there are more than `at`."""
    digest = hashlib.md5(usedforsecurity=False)
    buffer = bytearray(CHUNK)
    view, at, end = memoryview(buffer), 0, size if ready is None else 0
    while at < size:
        if at >= end and ready is not None:
            end = ready(at)
        count = os.preadv(fd, [view[: min(CHUNK, end - at)]], at)
        if not count:
            return ""  # shorter than it was
        digest.update(view[:count])
        at += count
        moved(count)
    return digest.hexdigest()


def _copy_behind(source: Source, fd: int, target: int, moved: Moved) -> str:
    """Copy in another thread, and hash what has been written; by reference where the file system can."""
    writer = _Writer(fd, target, source.signature[0])
    writer.start()
    try:
        found = _digest(target, writer.size, writer.wait, lambda count: moved(0, count))
    finally:
        writer.end()
    return found


class _Writer(threading.Thread):
    """Copies `size` bytes from one descriptor to another, never far ahead of who reads them."""

    def __init__(self, source: int, target: int, size: int) -> None:
        super().__init__(name="monkey-writer", daemon=True)
        self.source, self.target, self.size = source, target, size
        self._written, self._left = 0, False
        self._wrong: BaseException | None = None
        self._more = threading.Condition()

    def run(self) -> None:
        """Copy until all is written, or nobody wants it any more."""
        try:
            while self._written < self.size and not self._left:
                count = self._step()
                with self._more:
                    # Shorter than it was: whoever hashes it finds that out.
                    self._written = self._written + count if count else self.size
                    self._more.notify()
        except BaseException as exc:
            with self._more:
                self._wrong = exc
                self._more.notify()

    def _step(self) -> int:
        count = min(STEP, self.size - self._written)
        with suppress(OSError, AttributeError):
            return os.copy_file_range(self.source, self.target, count)
        data = os.read(self.source, count)
        write_all(self.target, data)
        return len(data)

    def wait(self, at: int) -> int:
        """Return how many bytes are there, once it is more than `at`. Raises what went wrong."""
        with self._more:
            while self._written <= at and self._wrong is None:
                self._more.wait()
            if self._wrong is not None:
                raise self._wrong
            return self._written

    def end(self) -> None:
        """Let it stop, and wait for that."""
        self._left = True
        self.join()
