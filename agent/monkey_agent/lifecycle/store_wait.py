"""The wait for a store that does not answer as an agent starts: networks and stores come up late."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from monkey.errors import MachineUnfit, MonkeyError, StoreMissing, StoreUnavailable
from monkey.store.open import locate_url, open_store
from monkey.store.store_port import Store

#: Seconds between tries.
_POLL_SECONDS = 3.0


async def open_late_store(url: str, patience: float, say: Callable[[str], None]) -> Store:
    """Return the store at `url` as soon as it answers; `say` receives why it does not yet.

    Raises StoreUnavailable where it has not answered after `patience` seconds, MachineUnfit where a file is in its
    place; else as `open_store`.
    """
    until, said = time.monotonic() + patience, ""
    while True:
        try:
            return await open_store(url)
        except StoreMissing as exc:
            raise _explain_missing(exc, url) from None
        except StoreUnavailable as exc:
            if time.monotonic() > until:
                raise
            if exc.message != said:
                said = exc.message
                say(f"{said}; the agent waits for it")
        await asyncio.sleep(_POLL_SECONDS)


def _explain_missing(exc: StoreMissing, url: str) -> MonkeyError:
    # A directory that is not there yet may be mounted later. A file stays.
    if Path(locate_url(url)).is_file():
        return MachineUnfit(exc.message, hint=exc.hint)
    return exc
