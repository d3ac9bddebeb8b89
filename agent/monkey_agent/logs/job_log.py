# Paths are plain strings here: pathlib costs as much as the system calls.
"""A job's log: one file that it writes itself, shipped in segments, and its last lines."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat

from monkey.errors import CorruptObject
from monkey.plan.text.terminal_codes import read_log_line
from monkey.protocol.layout import spell_segment_key
from monkey.protocol.record.left_out import LEAST_LEFT_OUT, describe_left_out
from monkey.protocol.record.packed_segments import MAX_LOG_SEGMENT, pack_log_segment, unpack_log_segment
from monkey.store.create import Lost, create_object
from monkey.store.store_port import Store
from monkey.untrusted_files import open_regular
from monkey_agent.logs.masking import LogMask

#: Bytes of a segment from which on it is packed in another thread: packing delays no other job then.
_LARGE = 64 * 1024
#: Lines, characters a line, and bytes in all, that a failure keeps: every agent and every reader holds them for ever.
TAIL_LINES, TAIL_WIDTH, TAIL_BYTES = 100, 500, 8 * 1024
#: Bytes at the end of a log that are looked at for that.
_END = 64 * 1024


class LogCursor:
    """A place in an attempt's log: what is behind it was taken, without secrets."""

    def __init__(self, path: str, mask: LogMask | None = None) -> None:
        """Start at the beginning of the file `path`; take it without what is to be masked."""
        self._path, self._mask = path, mask
        #: Bytes of the file that were taken, and what they were after masking.
        self.taken = self.given = 0

    @property
    def size(self) -> int:
        """Bytes that the job wrote so far."""
        try:
            status = os.lstat(self._path)
        except OSError:
            return 0
        return status.st_size if stat.S_ISREG(status.st_mode) else 0

    def peek(self, most: int, *, over: bool = False, exactly: bool = False) -> tuple[int, bytes]:
        """Return how many of the next `most` bytes can be taken now, and what is given for them.

        Until the log is `over`, what may be the beginning of a secret is held back, unless it was to be `exactly` that.
        """
        if self._mask is None:
            data = self.read(self.taken, most)
            return len(data), data
        before = min(self.taken, self._mask.margin)
        window = self.read(self.taken - before, before + most + self._mask.margin)
        seen = max(0, len(window) - before)
        count = most
        if not exactly:
            count = min(count, seen if over else seen - self._mask.held(window[before:]))
        count = max(0, min(count, seen))
        return count, self._mask.hide(window, before, before + count)

    def move(self, count: int, given: int) -> None:
        """Move behind `count` bytes, for which `given` were given."""
        self.taken, self.given = self.taken + count, self.given + given

    def skip_to(self, place: int) -> int:
        """Move to a byte of the file, and return how many are left out before it.

        They count as they are in the file: to mask what is never read would take seconds.
        """
        count = place - self.taken
        self.move(count, count)
        return count

    def read(self, at: int, size: int) -> bytes:
        """Return bytes of the file as they are; b"" where there is none."""
        try:
            fd = open_regular(self._path, os.O_RDONLY)
        except OSError:
            return b""
        try:
            return os.pread(fd, size, at)
        finally:
            os.close(fd)


class AttemptLog:
    """The log of one attempt, and how much of it is in the store."""

    def __init__(self, store: Store, prefix: str, path: str, mask: LogMask | None = None, limit: int = 0) -> None:
        """Ship the file `path` to keys that begin with `prefix`, without what is to be masked.

        `limit`: bytes of the file that are shipped at most, half of them from its end; 0 for all.
        """
        self._store, self._prefix, self._path, self._mask, self.limit = store, prefix, path, mask, limit
        #: Words for what was left out, until they are shipped with what follows.
        self._words = b""
        self._segments = 0
        self._cursor = self.open_cursor()
        #: Bytes of the segment that was tried last: one that may have been written is never tried with others.
        self._tried = 0
        self._lock = asyncio.Lock()

    def open_cursor(self) -> LogCursor:
        """Return a cursor at the beginning of the log."""
        return LogCursor(self._path, self._mask)

    async def ship(self) -> None:
        """Bring the log, which is over, to the store, durably. Raises StoreError; call it again then."""
        async with self._lock:
            until = self._cursor.size
            half = self.limit // 2
            if self.limit and self._cursor.taken <= half and until > self.limit + LEAST_LEFT_OUT:
                await self._ship_until(half)
                self._words = describe_left_out(self._cursor.skip_to(until - half), self.limit)
            await self._ship_until(until)

    async def _ship_until(self, until: int) -> None:
        while self._cursor.taken < until:
            most = self._tried or min(MAX_LOG_SEGMENT - len(self._words), until - self._cursor.taken)
            count, data = self._cursor.peek(most, over=True, exactly=bool(self._tried))
            if not count:
                return
            await self._segment(count, data)

    def read_short(self, most: int) -> bytes | None:
        """Return the log, which is over, if it has at most `most` bytes; None where it has more, or some is shipped."""
        size = self._cursor.size
        if self._cursor.taken or self._tried or size > most:
            return None
        count, data = self._cursor.peek(size, over=True)
        return data if count == size else None

    async def _segment(self, count: int, data: bytes) -> None:
        self._tried = count
        key, data = spell_segment_key(self._prefix, self._segments), self._words + data
        arguments = self._store, self._cursor.given - len(self._words), data
        if len(data) < _LARGE:
            packed = pack_log_segment(*arguments)
        else:
            packed = await asyncio.to_thread(pack_log_segment, *arguments)
        won = await create_object(self._store, key, packed)
        self._segments += 1
        # A key that holds other bytes is not ours to judge: the next number takes these.
        if not isinstance(won, Lost) or self._holds(key, won.existing, data):
            self._cursor.move(count, len(data) - len(self._words))
            self._words = b""
            self._tried = 0

    def _holds(self, key: str, stored: bytes, data: bytes) -> bool:
        """Does a segment hold these bytes? An earlier agent may have packed them by another version of zlib."""
        try:
            return unpack_log_segment(self._store, key, stored).data == data
        except CorruptObject:
            return False

    def note(self, text: str) -> None:
        """Add a line of ours to the job's."""
        with contextlib.suppress(OSError):
            fd = open_regular(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                os.write(fd, f"monkey: {text}\n".encode(errors="backslashreplace"))
            finally:
                os.close(fd)

    def tail(self) -> list[str]:
        """Return the last lines, as a terminal leaves them; bytes that are not UTF-8 are shown as U+FFFD."""
        start = max(0, self._cursor.size - _END)
        lines = self._end(start).decode(errors="replace").split("\n")
        if lines and not lines[-1]:
            lines.pop()
        if start and len(lines) > 1:
            lines = lines[1:]
        return bound_lines([read_log_line(line) for line in lines])

    def _end(self, start: int) -> bytes:
        if self._mask is None:
            return self._cursor.read(start, _END)
        before = min(start, self._mask.margin)
        return self._mask.hide(self._cursor.read(start - before, before + _END), before)


def bound_lines(lines: list[str]) -> list[str]:
    """Return as many of the last lines as a failure may keep."""
    kept: list[str] = []
    left = TAIL_BYTES
    for line in reversed(lines[-TAIL_LINES:]):
        cut = line[:TAIL_WIDTH]
        left -= len(cut.encode(errors="replace")) + 1
        if left < 0:
            break
        kept.append(cut)
    return kept[::-1]
