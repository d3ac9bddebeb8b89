"""Files on the agent's machine: is one touched, its digest, and what an error of the machine means."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
from io import FileIO


def explain_os_error(exc: OSError) -> str:
    """Return what an error of the machine means."""
    where = f": {exc.filename}" if exc.filename else ""
    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk of this machine is full{where}"
    return f"{exc.strerror or exc}{where}"


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
