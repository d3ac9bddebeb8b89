"""The directory on the host that holds a store: is it still ours, and where its files lie. As `directory/root.py`."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import secrets
import stat
from collections.abc import Iterable, Iterator

from monkey.errors import StoreError, StoreLinked, StoreMissing, StoreReplaced
from monkey.store.directory.publish import STALE
from monkey.store.format import FORMAT, decode_format
from monkey.store.keys import RESERVED, check_key
from monkey.store.sftp.wire import sftp_protocol
from monkey.store.sftp.wire.errors import explain_failure, explain_missing_root
from monkey.store.sftp.wire.sftp_protocol import SftpStatusError
from monkey.store.sftp.wire.sftp_requests import SftpRequests, is_directory
from monkey.store.sftp.wire.transfers import list_entries, read_remote

#: Seconds for which the directory of files in writing is taken for what it was.
_TRUSTED_SECONDS = 5.0

#: The names of files in writing, as `SftpRoot.temp` and `DirectoryRoot.temp` spell them.
_TEMP = re.compile(rb"[0-9a-f]{12}\.[0-9]+")

#: Directories that are remembered as synced.
SETTLED = 10_000


class SftpRoot:
    """A store's root directory, seen through whichever connection there is."""

    def __init__(self, url: str, root: bytes) -> None:
        """Expect the store at the absolute path `root`; which one it is, the first look tells."""
        self.url, self.root = url, root
        self._slash = root.rstrip(b"/") + b"/"
        self._id: str | None = None
        self._temps = self._slash + f"{RESERVED}/{secrets.token_hex(6)}.".encode()
        self._count = itertools.count()
        #: When the directory of files in writing was last seen to be no link, by the loop's clock.
        self._trusted = float("-inf")
        #: Directories whose own entries, up to the root, are on disk.
        self._settled: set[bytes] = set()
        #: Directories that are being made now.
        self._making: dict[bytes, asyncio.Task[None]] = {}

    def path(self, key: str) -> bytes:
        """Return where `key` lies; raises ValueError where it is no key."""
        return self._slash + check_key(key).encode()

    def below(self, prefix: str) -> bytes:
        """Return the path of the directory `prefix` ('' for the root), which was checked."""
        return self._slash + prefix.encode() if prefix else self.root

    def temp(self) -> bytes:
        """Return an unused name, where no listing looks."""
        return self._temps + str(next(self._count)).encode()

    async def check(self, calls: SftpRequests) -> None:
        """Raise StoreMissing unless our store is there, StoreFormat where it is too new.

        Raises SftpStatusError, SftpConnectionLost.
        """
        said = await read_remote(calls, self._slash + FORMAT.encode(), FORMAT)
        if said is None:
            if self._id is None:
                return  # it is being created
            found = await calls.look(self.root)
            if found is None or not is_directory(found):
                raise explain_missing_root(f"the store {self.url}", self.root, found is not None)
            raise StoreMissing(
                f"no store at {self.url}: the directory has no {FORMAT!r} in it",
                hint="bring it back (is it mounted? was it renamed?), or name another with 'store:' in monkey.yaml",
            )
        found_id = decode_format(said, self.url).id
        if self._id not in (None, found_id):
            raise StoreReplaced(
                f"another store is at {self.url}: expected {self._id}, found {found_id}",
                hint="bring the store that was there back",
            )
        self._id = found_id

    async def names(self, calls: SftpRequests) -> list[str]:
        """Return the names of what is in the root; none where there is no such directory.

        Raises SftpStatusError, SftpConnectionLost.
        """
        found = await calls.look(self.root)
        if found is None or not is_directory(await calls.stat(self.root)):
            return []
        return [name.decode(errors="replace") for name, _ in await list_entries(calls, self.root)]

    async def make_root(self, calls: SftpRequests) -> list[str]:
        """Make the root, and what is missing above it; returns the names of what is in it.

        Raises SftpStatusError, SftpConnectionLost.
        """
        found = await calls.look(self.root)
        if found is None:
            await _make(calls, self.root, b"")
        elif not is_directory(await calls.stat(self.root)):
            raise explain_missing_root(f"the store {self.url}", self.root, True)
        return [name.decode(errors="replace") for name, _ in await list_entries(calls, self.root)]

    async def make_parents(self, calls: SftpRequests, path: bytes) -> None:
        """Make the missing directories above `path`, in our store and nowhere else. Raises StoreError, SftpStatusError.

        Of many that miss the same one at once, one makes it.
        """
        directory = path.rpartition(b"/")[0]
        making = self._making.get(directory)
        if making is None:
            making = self._making[directory] = asyncio.ensure_future(self._make(calls, directory))
            making.add_done_callback(lambda done: self._making.pop(directory))
        await asyncio.shield(making)

    async def _make(self, calls: SftpRequests, directory: bytes) -> None:
        await self.check(calls)
        await self.refuse_links(calls, directory + b"/")
        await _make(calls, directory, self.root)

    async def refuse_links(self, calls: SftpRequests, path: bytes) -> None:
        """Raise StoreLinked where a directory above `path`, below the root, is a link: behind it no store is.

        SFTP names files by whole paths alone, so a link that is made between this look and its use is followed.
        """
        ends = [n for n, byte in enumerate(path) if byte == 0x2F and n > len(self.root)]
        found = await asyncio.gather(*(calls.look(path[:end]) for end in ends))
        for end, one in zip(ends, found, strict=True):
            if one is not None and stat.S_ISLNK(one.mode):
                link = path[len(self._slash) : end].decode(errors="replace")
                raise StoreLinked(f"the store {self.url}", link)

    async def trust_temps(self, calls: SftpRequests) -> None:
        """Raise StoreLinked where the directory of files in writing is a link; looks once in a while.

        Through a link that is newer, only a file of a random name comes and goes.
        """
        now = asyncio.get_running_loop().time()
        if now - self._trusted >= _TRUSTED_SECONDS:
            await self.refuse_links(calls, self._temps)
            self._trusted = now

    def chain(self, path: bytes) -> Iterator[bytes]:
        """Yield the directories to sync for the entry `path`: its own, and those above that are not settled."""
        directory = path.rpartition(b"/")[0]
        yield directory
        while directory not in self._settled and len(directory) > len(self.root):
            directory = directory.rpartition(b"/")[0] or b"/"
            yield directory

    def settle(self, directories: Iterable[bytes]) -> None:
        """Remember these as synced."""
        if len(self._settled) > SETTLED:
            self._settled.clear()
        self._settled.update(directories)

    async def explain(self, exc: SftpStatusError, calls: SftpRequests, key: str, path: bytes) -> StoreError:
        """Return the error to raise for `exc`, met at `key`; a store that vanished is seen here.

        Raises SftpConnectionLost.
        """
        try:
            await self.check(calls)
        except StoreError as missing:
            return missing
        except SftpStatusError:
            pass
        return await explain_failure(exc, calls, self.url, self.root, key, path)

    async def remove_stale(self, calls: SftpRequests) -> None:
        """Remove files that dead writers left aside, by the server's own clock.

        It removes files of our names alone, and none through a link.
        """
        directory = self._slash + RESERVED.encode()
        with contextlib.suppress(SftpStatusError):
            await self.refuse_links(calls, directory + b"/")
            now = (await calls.lstat(directory)).mtime  # when its newest file was made
            for name, found in await list_entries(calls, directory):
                if _TEMP.fullmatch(name) and now - found.mtime > STALE:
                    calls.forget(directory + b"/" + name)


async def _make(calls: SftpRequests, directory: bytes, top: bytes) -> None:
    """Make `directory` below `top`, which is not made, deepest first: mostly only one is missing."""
    if len(directory) <= len(top):
        return
    try:
        await calls.mkdir(directory)
    except SftpStatusError as exc:
        if exc.code == sftp_protocol.NO_SUCH_FILE:
            await _make(calls, directory.rpartition(b"/")[0], top)
            await _make_one(calls, directory)
        elif exc.code != sftp_protocol.FAILURE:  # that is: it is there, another was faster
            raise


async def _make_one(calls: SftpRequests, directory: bytes) -> None:
    try:
        await calls.mkdir(directory)
    except SftpStatusError as exc:
        if exc.code != sftp_protocol.FAILURE:
            raise
