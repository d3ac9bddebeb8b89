"""One SSH connection and its channels, until it ends: two of SFTP, and one whose shell syncs the remote disk."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import cast

import asyncssh

from monkey.errors import StoreError, StoreForbidden, StoreRefused
from monkey.store.sftp.wire.connect import ConnectTimeouts, SftpConnector
from monkey.store.sftp.wire.errors import NO_CONNECTION, make_connection_error, make_lost_error
from monkey.store.sftp.wire.sftp_protocol import SftpConnectionLost, SftpStatusError
from monkey.store.sftp.wire.sftp_requests import SftpRequests

#: What the server must offer.
_NEEDED = (b"posix-rename",)
#: What OpenSSH's server offers even if it only lets one read (`-R`).
_HARMLESS = b"statvfs"

_QUICKACK = getattr(socket, "TCP_QUICKACK", 0)


class _Channel(asyncssh.SSHClientSession[bytes]):
    """Between a channel of asyncssh and `SftpRequests`."""

    def __init__(self, link: SftpConnection) -> None:
        self._link = link
        self.calls: SftpRequests

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self.calls = SftpRequests(chan.write)

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if datatype is not None:
            return  # stderr: what a login shell complains about
        self._link.acknowledge()
        try:
            self.calls.feed(data)
        except StoreError as exc:
            self._link.trouble = exc
            self._link.lose(exc.message)

    def connection_lost(self, exc: Exception | None) -> None:
        self._link.closed = exc is None
        self._link.lose(str(exc) if exc else "closed by the other side")


class SftpConnection:
    """A connection that works, or has ended for good."""

    def __init__(self, connection: asyncssh.SSHClientConnection, patience: ConnectTimeouts) -> None:
        """Take over `connection`; `begin` first."""
        self.connection, self._patience = connection, patience
        self.ended: str | None = None
        #: Why it ended, where that is to be told as it is.
        self.trouble: StoreError | None = None
        #: A channel was closed, and not the whole connection.
        self.closed = False
        self._channels: list[SftpRequests] = []
        self.main: SftpRequests
        self._files: asyncio.Task[SftpRequests] | None = None
        self._timer: asyncio.TimerHandle | None = None
        # None behind a ProxyCommand; and Linux alone has it.
        self._socket = connection.get_extra_info("socket") if _QUICKACK else None
        #: How many wait for the remote disk on these channels.
        self.syncing = 0

    def acknowledge(self) -> None:
        """Let the kernel tell the other side at once that bytes arrived.

        sshd leaves Nagle's algorithm on: the second half of an answer waits for that, up to 40 ms.
        """
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)

    async def begin(self) -> None:
        """Open the channel for what is small. Raises StoreError, SftpConnectionLost, and what asyncssh raises."""
        self._watch()
        self.main = await self._open()
        for extension in _NEEDED:
            if not self.main.knows(extension):
                lacks = f"it has no {extension.decode()}@openssh.com"
                if self.main.knows(_HARMLESS):
                    hint = "have it run without -R in sshd_config, or use OpenSSH's own sftp-server"
                    raise StoreForbidden(f"the SFTP server lets nothing be written: {lacks}", hint=hint)
                raise StoreRefused(
                    f"the SFTP server cannot hold a store: {lacks}", hint="use OpenSSH's own sftp-server"
                )

    async def _open(self) -> SftpRequests:
        try:
            _, made = await self.connection.create_session(
                lambda: _Channel(self), subsystem="sftp", command=None, encoding=None, request_pty=False
            )
        except asyncssh.ChannelOpenError as exc:
            if exc.code == asyncssh.OPEN_CONNECT_FAILED:  # not the host's answer: the connection ended
                raise SftpConnectionLost(exc.reason) from exc
            raise StoreRefused(
                f"the host opens no SFTP channel: {exc.reason}",
                hint="install OpenSSH's sftp-server there, and set 'Subsystem sftp internal-sftp' in its sshd_config",
            ) from exc
        calls = cast(_Channel, made).calls
        self._channels.append(calls)
        await calls.greet()
        return calls

    async def files(self) -> SftpRequests:
        """Return the channel for whole files, which must not keep heartbeats waiting; the main one if there is no more.

        Raises SftpConnectionLost.
        """
        if self._files is None:
            self._files = asyncio.ensure_future(self._open_files())
        return await asyncio.shield(self._files)

    async def _open_files(self) -> SftpRequests:
        try:
            return await self._open()
        except (StoreRefused, asyncssh.Error):  # MaxSessions 1
            return self.main

    def _watch(self) -> None:
        """Look, again and again, whether an answer is awaited in vain."""
        loop = asyncio.get_running_loop()
        limit = self._patience.disk if self.syncing else self._patience.silence
        # What was asked on one channel may wait for what another sends, on a slow line: any sign of life is one.
        awaited = any(calls.busy for calls in self._channels)
        if awaited and loop.time() - max(calls.heard for calls in self._channels) > limit:
            self.lose(f"no answer for {limit:g} seconds")
        if self.ended is None:
            self._timer = loop.call_later(min(1.0, self._patience.silence / 4), self._watch)

    def lose(self, why: str) -> None:
        """End it; all waiting calls fail."""
        if self.ended is not None:
            return
        self.ended = why
        if self._timer is not None:
            self._timer.cancel()
        for calls in self._channels:
            calls.lose(why)
        self.connection.abort()

    async def close(self) -> None:
        """End it after what was posted has been done."""
        with contextlib.suppress(asyncssh.Error, OSError, SftpConnectionLost, SftpStatusError):
            async with asyncio.timeout(1):
                if self.ended is None:  # what is answered last was asked last
                    await asyncio.gather(*(calls.realpath(b".") for calls in self._channels))
                self.lose("closed")
                await self.connection.wait_closed()
        self.lose("closed")


async def open_link(dialer: SftpConnector, patience: ConnectTimeouts, url: str) -> SftpConnection:
    """Return a link to the host; raises StoreRefused, StoreUnavailable."""
    try:
        async with asyncio.timeout(2 * patience.connect):
            connection = await dialer.dial()
    except NO_CONNECTION as exc:
        raise make_connection_error(exc, url, dialer.way) from exc
    link = SftpConnection(connection, patience)
    try:
        await _begin(link, dialer, url)
    except BaseException:
        link.lose("not begun")
        raise
    return link


async def _begin(link: SftpConnection, dialer: SftpConnector, url: str) -> None:
    try:
        await link.begin()
    except SftpConnectionLost as exc:
        if link.trouble is not None:
            raise type(link.trouble)(f"the store {url}: {link.trouble.message}", hint=link.trouble.hint) from exc
        if not link.closed:
            raise make_lost_error(exc, url) from exc
        raise StoreRefused(
            f"the store {url}: the host ended the SFTP channel at once",
            hint="is its sftp-server installed? ('Subsystem sftp internal-sftp' in its sshd_config needs none)",
        ) from exc
    except StoreRefused as exc:
        raise type(exc)(f"the store {url}: {exc.message}", hint=exc.hint) from exc
    except NO_CONNECTION as exc:
        raise make_connection_error(exc, url, dialer.way) from exc
