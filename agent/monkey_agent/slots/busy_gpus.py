"""GPUs that other processes use: asked before a job is claimed for a GPU, and never on the agent's own time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from monkey.fleet import gpus

#: Seconds for which an answer holds.
_FRESH = 3.0


class BusyGpus:
    """The GPUs of this machine on which a process computes. On a GPU without a job of ours, it is a foreign one."""

    def __init__(self, ask: Callable[[], frozenset[str]] = gpus.list_busy_gpus) -> None:
        """Ask by `ask`, which may take seconds."""
        self._ask = ask
        self._known: frozenset[str] = frozenset()
        self._since = float("-inf")
        self._asking: asyncio.Task[None] | None = None
        #: Called when there is an answer.
        self.on_answer: Callable[[], None] = lambda: None

    def busy(self) -> frozenset[str] | None:
        """Return the GPUs on which a process computes; None while that is asked: then `on_answer` is called later."""
        if time.monotonic() - self._since <= _FRESH:
            return self._known
        if self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self._find_out())
        return None

    async def _find_out(self) -> None:
        self._known = await asyncio.to_thread(self._ask)
        self._since = time.monotonic()
        self.on_answer()
