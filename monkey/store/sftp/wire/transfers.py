"""The bytes of a file, in many requests under way at once."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator

from monkey.atomic_write import write_all
from monkey.removal import remove_file
from monkey.store.object_limits import check_size
from monkey.store.sftp.wire import sftp_protocol
from monkey.store.sftp.wire.sftp_protocol import FileAttributes, SftpStatusError
from monkey.store.sftp.wire.sftp_requests import SftpRequests, decode_data, decode_names, is_directory

#: Bytes of a local file that are read at a time.
_CHUNK_BYTES = 1024 * 1024

#: Requests under way for one file.
FLIGHT = 32

#: Requests for names under way for one directory, after the first answer. OpenSSH's have up to 100 names each.
_AHEAD = 8


async def read_remote(calls: SftpRequests, path: bytes, key: str) -> bytes | None:
    """Return the bytes of the object `key`, which lies at `path`; None where there is none, or a directory.

    Raises ObjectTooLarge, SftpStatusError, SftpConnectionLost.
    """
    try:
        handle = await calls.open(path)
    except SftpStatusError as exc:
        if exc.code == sftp_protocol.NO_SUCH_FILE:
            return None
        raise
    try:
        size = calls.fstat(handle)
        first, found = await asyncio.gather(calls.read(handle, 0, calls.read_block), size, return_exceptions=True)
        if isinstance(found, BaseException):
            raise found
        if is_directory(found):
            return None
        check_size(key, found.size)
        begun = b"" if _ended(first) else decode_data(_fine(first))
        check_size(key, len(begun))  # a server may say less than it has
        return b"".join([begun, *[part async for part in receive_chunks(calls, handle, len(begun), found.size)]])
    finally:
        calls.close(handle)


async def receive_chunks(calls: SftpRequests, handle: bytes, at: int, end: int) -> AsyncIterator[bytes]:
    """Yield the bytes from offset `at` to `end`, or the file's end, in order.

    Raises SftpStatusError, SftpConnectionLost.
    """
    flight: deque[tuple[int, asyncio.Future[bytes]]] = deque()
    asked = at
    try:
        while at < end:
            while asked < end and len(flight) < FLIGHT:
                flight.append((asked, calls.read(handle, asked, min(calls.read_block, end - asked))))
                asked += calls.read_block
            _, answer = flight.popleft()
            upto = flight[0][0] if flight else min(asked, end)
            async for part in _whole(calls, handle, at, upto, answer):
                at += len(part)
                yield part
            if at < upto:
                return  # it has become shorter
    finally:
        drop_answers(answer for _, answer in flight)


async def _whole(
    calls: SftpRequests, handle: bytes, at: int, upto: int, answer: asyncio.Future[bytes]
) -> AsyncIterator[bytes]:
    """Yield what one request brings, and ask again for what it left out: a server may answer with less."""
    while at < upto:
        try:
            part = decode_data(await answer)[: upto - at]
        except SftpStatusError as exc:
            if exc.code == sftp_protocol.EOF:
                return
            raise
        at += len(part)
        yield part
        if at < upto:
            answer = calls.read(handle, at, upto - at)


async def list_entries(calls: SftpRequests, path: bytes) -> list[tuple[bytes, FileAttributes]]:
    """Return what is in one directory. Raises SftpStatusError, SftpConnectionLost."""
    handle = await calls.opendir(path)
    found: list[tuple[bytes, FileAttributes]] = []
    ahead = 2  # most have few names: one answer, and the end
    try:
        while True:
            answers = await asyncio.gather(*(calls.readdir(handle) for _ in range(ahead)), return_exceptions=True)
            for answer in answers:
                if _ended(answer):
                    return found
                found += decode_names(_fine(answer))
            ahead = _AHEAD
    finally:
        calls.close(handle)


async def save_remote(calls: SftpRequests, handle: bytes, path: str) -> bool:
    """Write to the new local file `path` what an open remote one holds; leaves nothing where that fails.

    False, and nothing done, for a directory. Raises SftpStatusError, SftpConnectionLost, and the OSError of `path`
    itself.
    """
    found = await calls.fstat(handle)
    if is_directory(found):
        return False
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        async for part in receive_chunks(calls, handle, 0, found.size):
            write_all(fd, part)
    except BaseException:
        remove_file(path)
        raise
    finally:
        os.close(fd)
    return True


def read_chunks(fd: int) -> Iterator[bytes]:
    """Yield what an open local file holds."""
    while chunk := os.read(fd, _CHUNK_BYTES):
        yield chunk


class FileTransfer:
    """Writes one new file from its beginning."""

    def __init__(self, calls: SftpRequests, handle: bytes) -> None:
        """Write to `handle`."""
        self._calls, self._handle = calls, handle
        self._flight: deque[asyncio.Future[bytes]] = deque()
        self._at = 0

    async def send(self, chunk: bytes) -> None:
        """Send more bytes; raises SftpStatusError, SftpConnectionLost for these or earlier ones."""
        block, view = self._calls.write_block, memoryview(chunk)
        for at in range(0, len(chunk), block):
            await self._calls.room()
            part = bytes(view[at : at + block])
            self._flight.append(self._calls.write(self._handle, self._at, part))
            self._at += len(part)
            if len(self._flight) > FLIGHT:
                await self._flight.popleft()

    def add(self, answer: asyncio.Future[bytes]) -> None:
        """Wait in `finish` for this one, too, which was asked in the same flight."""
        self._flight.append(answer)

    async def finish(self) -> None:
        """Wait until all is written; raises SftpStatusError, SftpConnectionLost."""
        while self._flight:
            await self._flight.popleft()

    def drop(self) -> None:
        """Mind nothing any more."""
        drop_answers(self._flight)


def drop_answers(answers: Iterable[asyncio.Future[bytes]]) -> None:
    """Let answers come and go unread."""
    for answer in answers:
        answer.add_done_callback(_seen)


def _seen(answer: asyncio.Future[bytes]) -> None:
    if not answer.cancelled():
        answer.exception()


def _ended(answer: object) -> bool:
    return isinstance(answer, SftpStatusError) and answer.code == sftp_protocol.EOF


def _fine(answer: bytes | BaseException) -> bytes:
    if isinstance(answer, BaseException):
        raise answer
    return answer
