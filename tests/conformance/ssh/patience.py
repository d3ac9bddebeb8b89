"""Clients with much and with little patience, and tests that have some."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from monkey.errors import StoreUnavailable
from monkey.store.sftp.store import SftpStore
from monkey.store.sftp.url import parse_sftp_url
from monkey.store.sftp.wire.connect import ConnectTimeouts
from tests.loops import Run

T = TypeVar("T")

#: Seconds within which enough must have happened.
PATIENCE = 600.0
#: Seconds: as `ConnectTimeouts`, longer, for hosts that answer as soon as a busy machine lets them.
LONG = ConnectTimeouts(connect=30.0, silence=30.0, keepalive=10.0, reconnect=60.0)
#: Seconds: as `ConnectTimeouts`, shorter, for hosts that will not answer.
SHORT = ConnectTimeouts(connect=4.0, silence=1.5, disk=3.0, keepalive=0.5, reconnect=4.0)


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask until there is an answer: how long a machine needs for a new connection depends on what else it does."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return await ask()
        except StoreUnavailable:
            assert time.monotonic() < deadline


@contextlib.contextmanager
def client(url: str, patience: ConnectTimeouts, run: Run) -> Iterator[SftpStore]:
    """Connect, for a while."""
    store = SftpStore(parse_sftp_url(url), patience)
    try:
        run(patiently(store.connect))
        yield store
    finally:
        run(store.close())
