"""The wait for a store that does not answer as an agent starts: networks and stores come up late."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from monkey.errors import StoreUnavailable
from monkey.store.open import open_store
from monkey.store.store_port import Store

#: Seconds between tries.
_POLL_SECONDS = 3.0


async def open_late_store(url: str, patience: float, say: Callable[[str], None]) -> Store:
    """Return the store at `url` as soon as it answers; `say` receives why it does not yet.

    Raises StoreUnavailable where it has not answered after `patience` seconds; else as `open_store`.
    """
    until, said = time.monotonic() + patience, ""
    while True:
        try:
            return await open_store(url)
        except StoreUnavailable as exc:
            if time.monotonic() > until:
                raise
            if exc.message != said:
                said = exc.message
                say(f"{said}; the agent waits for it")
        await asyncio.sleep(_POLL_SECONDS)
