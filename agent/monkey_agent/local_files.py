"""Files on the agent's machine: is one touched, its digest, what an error of the machine means, is its disk full."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import secrets
from io import FileIO

from monkey.atomic_write import write_all
from monkey.removal import remove_file
from monkey.untrusted_files import open_directory

#: Errors of a disk, or of a quota, without room.
_FULL = (errno.ENOSPC, errno.EDQUOT)
#: Bytes that a disk has room for, or it is full.
_PROBED_BYTES = 64 << 10


def explain_os_error(exc: OSError) -> str:
    """Return what an error of the machine means."""
    where = f": {exc.filename}" if exc.filename else ""
    if exc.errno in _FULL:
        return f"the disk of this machine is full{where}"
    return f"{exc.strerror or exc}{where}"


def is_disk_full(directory: str) -> bool:
    """Say whether a file of 64 KiB cannot be written to a directory where a job can put anything.

    It is tried: the system's count of free bytes leaves out quotas.
    """
    name = f".{secrets.token_hex(6)}.room"
    try:
        at = open_directory(directory, step=True)
        try:
            _write_zeros(name, at)
        finally:
            remove_file(name, at)
            os.close(at)
    except OSError as exc:
        return exc.errno in _FULL
    return False


def _write_zeros(name: str, at: int) -> None:
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=at)
    try:
        write_all(fd, bytes(_PROBED_BYTES))
    finally:
        os.close(fd)


#: Bytes from which on a file is hashed in another thread.
LARGE_BYTES = 1 << 20

#: Uploads of one attempt at a time.
UPLOADS = 8


async def hash_local_file(path: str) -> str:
    """Return the SHA-256 of a file, 64 hex; in another thread if it is large. Raises OSError."""
    file = FileIO(path)  # closed by the thread, which may outlive us
    if os.fstat(file.fileno()).st_size > LARGE_BYTES:
        return await asyncio.to_thread(_hash_open_file, file)
    return _hash_open_file(file)


def _hash_open_file(file: FileIO) -> str:
    with file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_touched(directory: str) -> bool:
    """Say whether anything was made in (or removed from) a directory of a workspace."""
    try:
        return os.lstat(directory).st_mtime_ns != 0
    except OSError:
        return True
