"""Written aside, then published: the only way in which a file gets under a key on the host."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable

from monkey.store.replacement_stamp import make_stamp
from monkey.store.sftp.disk_sync import SftpSyncer
from monkey.store.sftp.root import SftpRoot
from monkey.store.sftp.wire import sftp_protocol
from monkey.store.sftp.wire.sftp_protocol import SftpStatusError
from monkey.store.sftp.wire.sftp_requests import SftpRequests, is_directory
from monkey.store.sftp.wire.transfers import FileTransfer


class SftpPublisher:
    """Writes into a place, over one link.

    Every method raises SftpStatusError, SftpConnectionLost, and StoreMissing where it is gone.
    """

    def __init__(self, place: SftpRoot, flusher: SftpSyncer) -> None:
        """Publish in `place`; `flusher` brings it to the disk."""
        self._place, self._flusher = place, flusher

    async def aside(self, calls: SftpRequests, chunks: Iterable[bytes], *, durable: bool, stamp: bool) -> bytes:
        """Return a new file aside that holds `chunks`."""
        temp, handle = await self._new(calls)
        sender = FileTransfer(calls, handle)
        try:
            for chunk in chunks:
                await sender.send(chunk)
            if stamp:
                sender.add(calls.times(handle, make_stamp(), int(time.time())))
            if durable:
                sender.add(calls.fsync(handle))
            await sender.finish()
        except BaseException as exc:
            sender.drop()
            if (
                isinstance(exc, SftpStatusError) and exc.code == sftp_protocol.FAILURE
            ):  # look now: what is removed leaves room
                free = await calls.free(temp)
                exc.full = free is not None and free.none
            calls.forget(temp)
            raise
        finally:
            calls.close(handle)
        return temp

    async def _new(self, calls: SftpRequests) -> tuple[bytes, bytes]:
        """Return a new file aside and its handle."""
        await self._place.trust_temps(calls)
        temp = self._place.temp()
        try:
            return temp, await self._open(calls, temp)
        except asyncio.CancelledError:  # it may come into being after all
            calls.forget(temp)
            raise

    async def _open(self, calls: SftpRequests, temp: bytes) -> bytes:
        try:
            return await calls.new(temp)
        except SftpStatusError as exc:
            if exc.code != sftp_protocol.NO_SUCH_FILE:
                raise
        await self._place.make_parents(calls, temp)
        return await calls.new(temp)

    async def link(self, calls: SftpRequests, temp: bytes, target: bytes) -> bool:
        """Give the file aside its key's name; False if something was there."""
        try:
            await self._named(calls, target, lambda: calls.link(temp, target))
            return True
        except SftpStatusError as exc:
            # "Failure" is all that SFTP says of a name that is taken.
            found = await calls.look(target) if exc.code == sftp_protocol.FAILURE else None
            if found is None or is_directory(found):
                raise
            return False

    async def _named(self, calls: SftpRequests, target: bytes, rename: Callable[[], Awaitable[bytes]]) -> None:
        """Do `rename`, which gives something the name `target`; missing directories are made, links refused."""
        await self._place.refuse_links(calls, target)
        try:
            await rename()
        except SftpStatusError as exc:
            if exc.code != sftp_protocol.NO_SUCH_FILE:
                raise
            await self._place.make_parents(calls, target)
            await rename()

    async def settle(self, targets: Iterable[bytes]) -> None:
        """Return when these entries, and the directories above them, would survive a loss of power."""
        chains = {directory: None for target in targets for directory in self._place.chain(target)}
        await self._flusher.settle(chains)
        self._place.settle(chains)

    async def replace(self, calls: SftpRequests, temp: bytes, target: bytes) -> None:
        try:
            await self._named(calls, target, lambda: calls.replace(temp, target))
        except BaseException:
            calls.forget(temp)
            raise
