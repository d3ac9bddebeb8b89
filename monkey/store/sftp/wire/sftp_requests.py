"""The requests to an SFTP server, one method each. Those that return a future may be sent in one flight."""

from __future__ import annotations

import asyncio
import stat
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from monkey.store.sftp.wire import sftp_protocol
from monkey.store.sftp.wire.sftp_protocol import (
    FileAttributes,
    SftpChannel,
    SftpStatusError,
    decode_attributes,
    decode_string,
    encode_text,
)

#: Ways to open a file.
_READ, _WRITE_NEW = 0x01, 0x02 | 0x08 | 0x20

#: Bytes that a request may move where the server names no limit.
_BLOCK = 32768

#: Largest number of bytes that a request moves: frequent answers show that a slow line lives.
_LARGEST = 65536

_ACCESS_AND_CHANGE = 0x08


@dataclass(frozen=True)
class DiskFree:
    """The free space on the server's disk, and whether it is read-only."""

    blocks: int
    inodes: int
    read_only: bool

    @property
    def none(self) -> bool:
        """Return whether no block or no inode is left."""
        return not (self.blocks and self.inodes)


class SftpRequests(SftpChannel):
    """One SFTP channel with its requests. Paths are absolute.

    Every method raises SftpStatusError, SftpConnectionLost.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        """Send bytes by `send`; call `greet` first."""
        super().__init__(send)
        self.extensions: dict[bytes, bytes] = {}
        #: Largest number of bytes that a request reads, and writes.
        self.read_block = self.write_block = _BLOCK

    async def greet(self) -> None:
        """Greet the server, and learn its extensions and limits."""
        self.extensions = await self.begin()
        if b"limits@openssh.com" in self.extensions:
            answer = await self.request(sftp_protocol.EXTENDED, encode_text(b"limits@openssh.com"))
            _, read, write, _ = struct.unpack_from(">QQQQ", answer)
            self.read_block, self.write_block = min(read or _BLOCK, _LARGEST), min(write or _BLOCK, _LARGEST)

    def knows(self, extension: bytes) -> bool:
        """Return whether the server offers this extension of OpenSSH."""
        return extension + b"@openssh.com" in self.extensions

    async def open(self, path: bytes) -> bytes:
        """Open a file, and return a handle for reading; a directory can be opened, too, but not read."""
        return await self.request(sftp_protocol.OPEN, encode_text(path) + struct.pack(">II", _READ, 0))

    async def new(self, path: bytes) -> bytes:
        """Create a file that does not exist, and return a handle for writing."""
        return await self.request(sftp_protocol.OPEN, encode_text(path) + struct.pack(">II", _WRITE_NEW, 0))

    def close(self, handle: bytes) -> None:
        """Close a handle as `open` returned it, without waiting."""
        self.post(sftp_protocol.CLOSE, handle)

    def read(self, handle: bytes, offset: int, size: int) -> asyncio.Future[bytes]:
        """Request at most `size` bytes from `offset` on; `decode_data` decodes the answer."""
        return self.request(sftp_protocol.READ, handle + struct.pack(">QI", offset, size))

    def write(self, handle: bytes, offset: int, data: bytes) -> asyncio.Future[bytes]:
        """Write `data`, at most `write_block` bytes, at `offset`."""
        return self.request(sftp_protocol.WRITE, handle + struct.pack(">Q", offset) + encode_text(data))

    def times(self, handle: bytes, access: int, change: int) -> asyncio.Future[bytes]:
        """Set the file's times of access and change, in seconds since 1970."""
        return self.request(sftp_protocol.FSETSTAT, handle + struct.pack(">III", _ACCESS_AND_CHANGE, access, change))

    def fsync(self, handle: bytes) -> asyncio.Future[bytes]:
        """Sync a file: the answer comes when it is on disk. Do nothing where the server has no such request."""
        if self.knows(b"fsync"):
            return self.request(sftp_protocol.EXTENDED, encode_text(b"fsync@openssh.com") + handle)
        done = asyncio.get_running_loop().create_future()
        done.set_result(b"")
        return done

    async def fstat(self, handle: bytes) -> FileAttributes:
        """Return the attributes of an open file."""
        return decode_attributes(await self.request(sftp_protocol.FSTAT, handle), 0)[0]

    async def lstat(self, path: bytes) -> FileAttributes:
        """Return the attributes of what is at `path`, without following a link."""
        return decode_attributes(await self.request(sftp_protocol.LSTAT, encode_text(path)), 0)[0]

    async def stat(self, path: bytes) -> FileAttributes:
        """Return the attributes of what is at `path`, or of what a link there leads to."""
        return decode_attributes(await self.request(sftp_protocol.STAT, encode_text(path)), 0)[0]

    async def look(self, path: bytes) -> FileAttributes | None:
        """Return the attributes of what is at `path`, as `lstat` does; None where nothing is."""
        try:
            return await self.lstat(path)
        except SftpStatusError as exc:
            if exc.code == sftp_protocol.NO_SUCH_FILE:
                return None
            raise

    def mkdir(self, path: bytes) -> asyncio.Future[bytes]:
        """Make a directory."""
        return self.request(sftp_protocol.MKDIR, encode_text(path) + bytes(4))

    def remove(self, path: bytes) -> asyncio.Future[bytes]:
        """Remove a file."""
        return self.request(sftp_protocol.REMOVE, encode_text(path))

    def forget(self, path: bytes) -> None:
        """Remove a file, without waiting for the outcome."""
        self.post(sftp_protocol.REMOVE, encode_text(path))

    def link(self, old: bytes, new: bytes) -> asyncio.Future[bytes]:
        """Give the file `old` the name `new` if that is free; `old` may stay as a second name.

        A bare RENAME also refuses to replace. But where the file system has no hard links, OpenSSH's RENAME falls back
        to one that may replace after all. So RENAME is only for servers that cannot link.
        """
        if self.knows(b"hardlink"):
            return self.request(
                sftp_protocol.EXTENDED, encode_text(b"hardlink@openssh.com") + encode_text(old) + encode_text(new)
            )
        return self.request(sftp_protocol.RENAME, encode_text(old) + encode_text(new))

    def replace(self, old: bytes, new: bytes) -> asyncio.Future[bytes]:
        """Rename the file `old` to `new`, and replace what is there."""
        return self.request(
            sftp_protocol.EXTENDED, encode_text(b"posix-rename@openssh.com") + encode_text(old) + encode_text(new)
        )

    async def realpath(self, path: bytes) -> bytes:
        """Return the absolute form of `path`, as the server sees it."""
        return decode_string(await self.request(sftp_protocol.REALPATH, encode_text(path)), 4)[0]

    async def free(self, path: bytes) -> DiskFree | None:
        """Return the free space on the disk of `path`; None where the server has no such request."""
        if not self.knows(b"statvfs"):
            return None
        answer = await self.request(sftp_protocol.EXTENDED, encode_text(b"statvfs@openssh.com") + encode_text(path))
        fields = struct.unpack_from(">11Q", answer)
        return DiskFree(fields[4], fields[7], bool(fields[9] & 1))

    async def opendir(self, path: bytes) -> bytes:
        """Open a directory, and return a handle for `readdir`."""
        return await self.request(sftp_protocol.OPENDIR, encode_text(path))

    def readdir(self, handle: bytes) -> asyncio.Future[bytes]:
        """Request the next names; `decode_names` decodes the answer. At the end, it raises a status of EOF."""
        return self.request(sftp_protocol.READDIR, handle)


def decode_data(answer: bytes) -> bytes:
    """Return the bytes in the answer to `read`."""
    return answer[4:]


def decode_names(answer: bytes) -> Iterator[tuple[bytes, FileAttributes]]:
    """Yield the names and attributes in the answer to `readdir`, without '.' and '..'."""
    count, at = int.from_bytes(answer[:4], "big"), 4
    for _ in range(count):
        name, at = decode_string(answer, at)
        _, at = decode_string(answer, at)
        found, at = decode_attributes(answer, at)
        if name not in (b".", b".."):
            yield name, found


def is_directory(found: FileAttributes) -> bool:
    """Return whether the attributes are those of a directory."""
    return stat.S_ISDIR(found.mode)
