"""SFTP version 3, the client's side: it sends requests without waiting for answers, many in one packet of SSH.

asyncssh has a client, too. That one writes each request into a packet of its own, and took 0.5 ms a file. It also lacks
two features that save time on the server's disk: one handle's requests in one flight, and attributes in a listing.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import NamedTuple

from monkey.errors import StoreUnavailable

INIT, VERSION, OPEN, CLOSE, READ, WRITE, LSTAT, FSTAT = 1, 2, 3, 4, 5, 6, 7, 8
FSETSTAT, OPENDIR, READDIR, REMOVE, MKDIR, REALPATH, STAT, RENAME, EXTENDED = 10, 11, 12, 13, 14, 16, 17, 18, 200
STATUS, HANDLE = 101, 102

#: Statuses of an answer.
OK, EOF, NO_SUCH_FILE, DENIED, FAILURE, BAD_MESSAGE, UNSUPPORTED = 0, 1, 2, 3, 4, 5, 8

#: Bytes of the longest valid answer. The greeting that a login shell prints looks like a longer one.
_MAX_PACKET_BYTES = 16 * 1024 * 1024

#: Bytes sent without an answer, above which a sender waits (`SftpChannel.room`). A heartbeat waits for them on a slow
#: line: 20 s at 100 KB/s. They fill a fast line: 100 MB/s at a round trip of 20 ms.
WINDOW = 2 * 1024 * 1024

#: Bytes of a request above which it counts in `WINDOW`.
_HEAVY = 1024


class SftpStatusError(Exception):
    """An error status of the server."""

    def __init__(self, code: int, message: str) -> None:
        """Keep the code (SSH_FX_…) and the server's own words, which are rarely of use."""
        super().__init__(f"{message or 'no reason given'} (SFTP status {code})")
        self.code = code
        #: Whether the server's disk was found full then.
        self.full = False


class SftpConnectionLost(Exception):
    """A connection that ended with requests under way: whether they were done is not known."""


class FileAttributes(NamedTuple):
    """The attributes of a file: size in bytes, times in seconds since 1970."""

    size: int
    mode: int
    atime: int
    mtime: int


class SftpChannel:
    """One SFTP channel: it calls `send` with bytes for the server, `feed` takes the server's bytes, `lose` ends it."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        """Send bytes by `send`."""
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._pending: dict[int, asyncio.Future[bytes] | None] = {}
        self._number = 0
        self._out: list[bytes] = []
        self._in = bytearray()
        self._room = asyncio.Event()
        self._room.set()
        #: Request to its bytes, for those that count in `WINDOW`; then their sum.
        self._heavy: dict[int, int] = {}
        self._unanswered = 0
        self._lost: str | None = None
        #: The loop's time of the last bytes from the server, or of the first unanswered request.
        self.heard = self._loop.time()

    @property
    def busy(self) -> bool:
        """Return whether an answer is awaited."""
        return bool(self._pending)

    def request(self, kind: int, body: bytes) -> asyncio.Future[bytes]:
        """Send a request; return the future of its answer without the head, b"" for a bare OK.

        The future raises SftpStatusError, SftpConnectionLost. Raises SftpConnectionLost where the connection has ended.
        """
        if self._lost is not None:
            raise SftpConnectionLost(self._lost)
        future = self._loop.create_future()
        self._ask(kind, body, future)
        return future

    def post(self, kind: int, body: bytes) -> None:
        """Send a request without waiting for its outcome; do nothing where the connection has ended."""
        if self._lost is None:
            self._ask(kind, body, None)

    def _ask(self, kind: int, body: bytes, future: asyncio.Future[bytes] | None) -> None:
        if not self._pending:
            self.heard = self._loop.time()
        self._number = number = (self._number + 1) & 0xFFFFFFFF
        self._pending[number] = future
        self._queue(struct.pack(">IBI", len(body) + 5, kind, number) + body)
        if len(body) > _HEAVY:
            self._heavy[number] = len(body)
            self._unanswered += len(body)
            if self._unanswered > WINDOW:
                self._room.clear()

    def _queue(self, packet: bytes) -> None:
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(packet)

    def _flush(self) -> None:
        data, self._out = b"".join(self._out), []
        if self._lost is None and data:
            self._send(data)

    async def room(self) -> None:
        """Wait until more bytes may be sent. Raises SftpConnectionLost."""
        while not self._room.is_set():
            await self._room.wait()
        if self._lost is not None:
            raise SftpConnectionLost(self._lost)

    async def begin(self) -> dict[bytes, bytes]:
        """Greet the server, and return its extensions, name to data. Raises SftpConnectionLost."""
        greeting = self._pending[-1] = self._loop.create_future()
        self.heard = self._loop.time()
        self._queue(struct.pack(">IBI", 5, INIT, 3))
        said = await greeting
        found, at = {}, 4
        while at < len(said):
            name, at = decode_string(said, at)
            found[name], at = decode_string(said, at)
        return found

    def feed(self, data: bytes) -> None:
        """Read bytes that arrived from the server. Raises StoreUnavailable where they are not SFTP."""
        self.heard = self._loop.time()
        buffer, at = self._in, 0
        buffer += data
        while len(buffer) - at >= 4:
            size = int.from_bytes(buffer[at : at + 4], "big")
            if not 5 <= size <= _MAX_PACKET_BYTES:
                raise StoreUnavailable(
                    f"expected SFTP, found {bytes(buffer[at : at + 60])!r}",
                    hint="something on the host prints at login: let ~/.bashrc be silent where the shell is not "
                    "interactive, or set 'Subsystem sftp internal-sftp' in its sshd_config",
                )
            if len(buffer) - at < 4 + size:
                break
            self._answer(bytes(buffer[at + 4 : at + 4 + size]))
            at += 4 + size
        del buffer[:at]

    def _answer(self, packet: bytes) -> None:
        kind = packet[0]
        number = -1 if kind == VERSION else int.from_bytes(packet[1:5], "big")
        future = self._pending.pop(number, None)
        if heavy := self._heavy.pop(number, 0):
            self._unanswered -= heavy
            if self._unanswered <= WINDOW:
                self._room.set()
        if future is None or future.done():
            if kind == HANDLE:  # who asked for it was cancelled
                self.post(CLOSE, packet[5:])
        elif kind == VERSION:
            future.set_result(packet[1:])
        elif kind != STATUS:
            future.set_result(packet[5:])
        elif (code := int.from_bytes(packet[5:9], "big")) == OK:
            future.set_result(b"")
        else:
            future.set_exception(SftpStatusError(code, _said(packet)))

    def lose(self, why: str) -> None:
        """End the channel: waiting calls fail with `why`, and nothing is sent any more."""
        if self._lost is not None:
            return
        self._lost = why
        pending, self._pending = self._pending, {}
        for future in pending.values():
            if future is not None and not future.done():
                future.set_exception(SftpConnectionLost(why))
                future.exception()  # seen: who awaits it may have been cancelled by now
        self._room.set()


def _said(packet: bytes) -> str:
    try:
        return decode_string(packet, 9)[0].decode("utf-8", "replace")
    except (struct.error, IndexError):
        return ""


def encode_text(value: bytes) -> bytes:
    """Return a string in SFTP's encoding: its length, then its bytes."""
    return len(value).to_bytes(4, "big") + value


def decode_string(data: bytes, at: int) -> tuple[bytes, int]:
    """Return the string that begins at offset `at`, and the offset of its end."""
    end = at + 4 + int.from_bytes(data[at : at + 4], "big")
    return data[at + 4 : end], end


def decode_attributes(data: bytes, at: int) -> tuple[FileAttributes, int]:
    """Return the attributes that begin at offset `at`, and the offset of their end; missing ones are 0."""
    (flags,) = struct.unpack_from(">I", data, at)
    at += 4
    size = mode = atime = mtime = 0
    if flags & 1:
        (size,) = struct.unpack_from(">Q", data, at)
        at += 8
    if flags & 2:
        at += 8
    if flags & 4:
        (mode,) = struct.unpack_from(">I", data, at)
        at += 4
    if flags & 8:
        atime, mtime = struct.unpack_from(">II", data, at)
        at += 8
    if flags & 0x80000000:
        (count,) = struct.unpack_from(">I", data, at)
        at += 4
        for _ in range(2 * count):
            _, at = decode_string(data, at)
    return FileAttributes(size, mode, atime, mtime), at
