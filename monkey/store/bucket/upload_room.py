"""How much may be on its way into a bucket at once: on a slow line, each request must end before its time is over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

#: Seconds in which a line is to carry what is on its way: a quarter of what a request may take.
SECONDS = 30.0
#: Bytes that may be on their way in any case: nobody knows yet how fast the line is.
LEAST_BYTES = 8 * 2**20


class UploadRoom:
    """The room that uploads share. Once some have arrived, it is as large as what the line carries in SECONDS."""

    def __init__(self) -> None:
        """Begin with nothing on its way."""
        self._under_way = 0
        self._arrived = 0
        #: Seconds in which something was on its way; and since when something is.
        self._busy = 0.0
        self._began = 0.0
        self._freed = asyncio.Event()

    @asynccontextmanager
    async def take(self, size: int) -> AsyncIterator[None]:
        """Wait until so many bytes have room, or nothing else is on its way; they do while the context lasts."""
        while self._under_way and self._under_way + size > self._measure_room():
            await self._freed.wait()
        if not self._under_way:
            self._began = time.monotonic()
        self._under_way += size
        try:
            yield
            self._arrived += size
        finally:
            self._under_way -= size
            if not self._under_way:
                self._busy += time.monotonic() - self._began
            self._freed.set()
            self._freed = asyncio.Event()

    def _measure_room(self) -> float:
        """Return how many bytes may be on their way; something is."""
        busy = self._busy + time.monotonic() - self._began
        return max(LEAST_BYTES, SECONDS * self._arrived / max(busy, 1e-9))
