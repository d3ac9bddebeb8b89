"""Syncs of files and directories to the remote disk: those that wait together share a sync.

SFTP can sync one file (fsync@openssh.com), which also works on a directory. Ten thousand of those, one after the other,
are many seconds. Where the host lets us run a command, one `sync -f` syncs all that was written before.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Iterable
from typing import cast

import asyncssh

from monkey.store.sftp.wire.sftp_connection import SftpConnection
from monkey.store.sftp.wire.sftp_protocol import NO_SUCH_FILE, SftpConnectionLost, SftpStatusError
from monkey.store.sftp.wire.sftp_requests import SftpRequests

#: Number of files that are synced one by one at the same time; each holds a handle on the server.
_CONCURRENCY = 64

#: Number of paths from which on the whole file system is synced at once.
SYNC_CONNECTIONS = 8

#: File systems whose syncfs is known to reach the disk, as `stat -f` calls them; from Linux 5.8 on it reports errors.
_SYNCFS_WORKS = ("ext2/ext3", "xfs", "btrfs", "f2fs")

#: Seconds that a sync may take, and those for each path, before it counts as waiting for other processes' data; then
#: the seconds for which it is not used.
SLOW, SLOW_EACH, PENALTY = 1.0, 0.01, 60.0

#: The script on the host: it prints the kernel and the file system, then syncs once for each line of input. The only
#: file name in the command is the root, which is quoted.
_SCRIPT = (
    'echo "$(uname -sr) $(stat -f -c %T "$1")"; while read -r _; do sync -f "$1" && echo done || echo failed; done'
)


class SyncShell(asyncssh.SSHClientSession[str]):
    """A shell on the host that syncs on request."""

    def __init__(self) -> None:
        """Start without any answer."""
        self.ended = False
        self._answers: asyncio.Queue[str] = asyncio.Queue()
        self._rest = ""
        self._channel: asyncssh.SSHClientChannel[str]

    def connection_made(self, chan: asyncssh.SSHClientChannel[str]) -> None:
        """See asyncssh."""
        self._channel = chan

    def data_received(self, data: str, datatype: asyncssh.DataType) -> None:
        """See asyncssh."""
        if datatype is None:
            *lines, self._rest = (self._rest + data).split("\n")
            for line in lines:
                self._answers.put_nowait(line)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncssh."""
        self.ended = True
        self._answers.put_nowait("")

    async def able(self, seconds: float) -> bool:
        """Return whether the shell answers within `seconds`, and its `sync -f` is known to reach the disk."""
        try:
            async with asyncio.timeout(seconds):
                said = await self._answers.get()
        except TimeoutError:
            return False
        found = re.fullmatch(r"Linux (\d+)\.(\d+)\S* (\S+)", said)
        return found is not None and (int(found[1]), int(found[2])) >= (5, 8) and found[3] in _SYNCFS_WORKS

    async def sync(self) -> bool:
        """Sync, and return whether all that was written before is on disk."""
        self._channel.write("\n")
        return await self._answers.get() == "done"

    def end(self) -> None:
        """Close the shell."""
        self.ended = True
        self._channel.close()


class SftpSyncer:
    """The syncer of one link."""

    def __init__(self, link: SftpConnection, root: bytes) -> None:
        """Sync files and directories below `root`."""
        self._link, self._root = link, root
        self._waiting: list[tuple[list[bytes], asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None
        self._helper: SyncShell | None = None
        self._starting: asyncio.Task[SyncShell | None] | None = None
        self._slots = asyncio.Semaphore(_CONCURRENCY)
        self._alone_until = 0.0

    async def settle(self, paths: Iterable[bytes]) -> None:
        """Sync files and directories: return when they would survive a loss of power.

        Paths that no longer exist are skipped. Raises SftpStatusError, SftpConnectionLost.
        """
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((list(paths), done))
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())
        await done

    async def _run(self) -> None:
        await asyncio.sleep(0)  # whoever is about to ask in this turn of the loop comes along
        while batch := self._waiting:
            self._waiting = []
            self._link.syncing += 1
            try:
                await self._sync({path: None for paths, _ in batch for path in paths})
            except (SftpStatusError, SftpConnectionLost) as exc:
                _tell(batch, exc)
            else:
                _tell(batch, None)
            finally:
                self._link.syncing -= 1
        self._task = None

    async def _sync(self, paths: Iterable[bytes]) -> None:
        paths = list(paths)
        if len(paths) >= SYNC_CONNECTIONS and await self._whole(len(paths)):
            return
        outcomes = await asyncio.gather(*(self._one(path) for path in paths), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _one(self, path: bytes) -> None:
        calls: SftpRequests = self._link.main
        async with self._slots:
            await self._fsync(calls, path)

    async def _fsync(self, calls: SftpRequests, path: bytes) -> None:
        try:
            handle = await calls.open(path)
        except SftpStatusError as exc:
            if exc.code == NO_SUCH_FILE:
                return
            raise
        synced = calls.fsync(handle)
        calls.close(handle)
        await synced

    async def together(self) -> bool:
        """Return whether many paths can be synced at once, and no recent such sync was slow."""
        if asyncio.get_running_loop().time() < self._alone_until:
            return False
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        self._helper = await asyncio.shield(self._starting)
        return self._helper is not None and not self._helper.ended

    async def _whole(self, count: int) -> bool:
        """Sync the whole file system, for `count` paths, if the host lets us; return whether it worked."""
        if not await self.together() or self._helper is None:
            return False
        loop = asyncio.get_running_loop()
        began = loop.time()
        synced = await self._helper.sync()
        if not synced:
            self._helper.end()
        if loop.time() - began > SLOW + SLOW_EACH * count:
            self._alone_until = loop.time() + PENALTY
        return synced

    async def _start(self) -> SyncShell | None:
        command = f"exec sh -c {shlex.quote(_SCRIPT)} sh {shlex.quote(self._root.decode())}"
        try:
            _, made = await self._link.connection.create_session(
                SyncShell, command, subsystem=None, encoding="utf-8", errors="replace", request_pty=False
            )
        except (asyncssh.Error, OSError):
            return None
        helper = cast(SyncShell, made)
        if await helper.able(5.0):
            return helper
        helper.end()
        return None


def _tell(batch: list[tuple[list[bytes], asyncio.Future[None]]], exc: Exception | None) -> None:
    for _, done in batch:
        if done.done():
            continue  # cancelled
        if exc is None:
            done.set_result(None)
        else:
            done.set_exception(exc)
