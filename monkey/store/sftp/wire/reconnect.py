"""Always a connection: the one that there is, or a new one, with pauses in between and within a call's time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from monkey.errors import StoreUnavailable
from monkey.store.sftp.url import SftpTarget
from monkey.store.sftp.wire.connect import ConnectTimeouts, SftpConnector
from monkey.store.sftp.wire.errors import make_lost_error
from monkey.store.sftp.wire.sftp_connection import SftpConnection, open_link
from monkey.store.sftp.wire.sftp_protocol import SftpConnectionLost

_T = TypeVar("_T")

#: Seconds before the second try to connect; each further one waits twice as long, up to the longest.
_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS = 0.1, 4.0


class ReconnectingSftp:
    """The connection of one store."""

    def __init__(
        self, target: SftpTarget, patience: ConnectTimeouts, arrive: Callable[[SftpConnection], Awaitable[None]]
    ) -> None:
        """Connect to `target`; `arrive` is called with each new link before it is used, and may raise StoreError."""
        self._url, self._patience, self._arrive = target.url, patience, arrive
        self._dialer = SftpConnector(target, patience)
        self._link: SftpConnection | None = None
        self._dialing: asyncio.Task[SftpConnection] | None = None
        self._pause = 0.0
        self._closed = False

    async def first(self) -> None:
        """Connect for the first time, and only once: a mistake in the URL is reported at once. Raises StoreError."""
        self._link = await self._dial()

    async def do(self, work: Callable[[SftpConnection], Awaitable[_T]], again: Callable[[], bool] = lambda: True) -> _T:
        """Return what `work` returns; where the link is lost in the middle, do it again while `again()` says so.

        Raises StoreUnavailable when the time is over, and whatever else `work` raises.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience.reconnect
        while True:
            link = await self._linked(deadline)
            try:
                return await work(link)
            except SftpConnectionLost as exc:
                link.lose(str(exc))
                if not again() or self._closed or loop.time() > deadline:
                    raise make_lost_error(exc, self._url) from exc

    async def _linked(self, deadline: float) -> SftpConnection:
        """Return a link, by `deadline`; all who want one wait for the same. Raises StoreError."""
        while (link := self._link) is None or link.ended is not None:
            if self._closed:
                raise StoreUnavailable(f"the store {self._url} was closed")
            if self._dialing is None:
                self._dialing = asyncio.ensure_future(self._dial())
                self._dialing.add_done_callback(self._dialed)
            try:
                await asyncio.shield(self._dialing)
            except StoreUnavailable:
                if asyncio.get_running_loop().time() + self._pause > deadline:
                    raise
        return link

    async def _dial(self) -> SftpConnection:
        if self._pause:
            await asyncio.sleep(self._pause * random.uniform(0.5, 1.0))
        link = await open_link(self._dialer, self._patience, self._url)
        try:
            await self._arrive(link)
        except SftpConnectionLost as exc:
            raise make_lost_error(exc, self._url) from exc
        except BaseException:
            link.lose("not ours")
            raise
        return link

    def _dialed(self, task: asyncio.Task[SftpConnection]) -> None:
        self._dialing = None
        if task.cancelled():
            return
        if task.exception() is None:
            self._link, self._pause = task.result(), 0.0
            return
        self._pause = min(_MAX_BACKOFF_SECONDS, 2 * self._pause or _BACKOFF_SECONDS)

    async def close(self) -> None:
        """End the connection."""
        self._closed = True
        if self._dialing is not None:
            self._dialing.cancel()
            await asyncio.gather(self._dialing, return_exceptions=True)
        if self._link is not None:
            await self._link.close()
