"""Listing a tree on the host as a flat space of keys: many directories in flight at once."""

from __future__ import annotations

import asyncio
import stat

from monkey.store.directory.listing import is_hidden, may_hold_keys
from monkey.store.keys import RESERVED
from monkey.store.replacement_stamp import extract_stamp
from monkey.store.sftp.wire.sftp_protocol import NO_SUCH_FILE, FileAttributes, SftpStatusError
from monkey.store.sftp.wire.sftp_requests import SftpRequests, is_directory
from monkey.store.sftp.wire.transfers import list_entries
from monkey.store.store_port import ListedObject

#: Directories that are read at the same time; each holds a handle on the server.
_CONCURRENCY = 64


async def read_entries(calls: SftpRequests, path: bytes) -> list[tuple[bytes, FileAttributes]]:
    """Return what is in one directory, which may be missing. Raises SftpStatusError."""
    try:
        return await list_entries(calls, path)
    except SftpStatusError as exc:
        if exc.code == NO_SUCH_FILE:
            return []
        raise


class SftpListing:
    """One listing."""

    def __init__(self, calls: SftpRequests, prefix: str, after: str) -> None:
        """List what has `prefix` and sorts after `after`."""
        self._calls, self._prefix, self._after = calls, prefix, after
        self._slots = asyncio.Semaphore(_CONCURRENCY)
        self.items: list[ListedObject] = []

    async def go(self, path: bytes, directory: str) -> None:
        """Add what is below `path`, whose key is `directory` ('' for the root).

        Raises SftpStatusError, SftpConnectionLost.
        """
        base = directory + "/" if directory else ""
        async with self._slots:
            found = await read_entries(self._calls, path)
        below = []
        for raw, attrs in found:
            try:
                name = raw.decode()
            except UnicodeDecodeError:
                continue  # no key of ours
            if is_directory(attrs):
                if may_hold_keys(f"{base}{name}/", self._prefix, self._after) and base + name != RESERVED:
                    below.append(self.go(path + b"/" + raw, base + name))
            else:
                self._add(base + name, name, attrs)
        await asyncio.gather(*below)

    def _add(self, key: str, name: str, found: FileAttributes) -> None:
        if key > self._after and key.startswith(self._prefix) and stat.S_ISREG(found.mode) and not is_hidden(name):
            self.items.append(ListedObject(key, found.size, f"{found.mtime}-{extract_stamp(found.atime)}-{found.size}"))
