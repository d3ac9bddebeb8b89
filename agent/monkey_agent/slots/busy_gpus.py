"""GPUs on which others compute: asked before a job is claimed for one, and never on the agent's own time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from monkey.fleet import gpus

#: Seconds for which an answer holds.
_FRESH = 3.0


class BusyGpus:
    """Who uses this machine's GPUs besides us. On one that no job of ours has, any process is somebody else's."""

    def __init__(self, ask: Callable[[], frozenset[str]] = gpus.list_busy_gpus) -> None:
        """Find out by `ask`, which may take seconds."""
        self._ask = ask
        self._known: frozenset[str] = frozenset()
        self._since = float("-inf")
        self._asking: asyncio.Task[None] | None = None
        #: Called when there is an answer.
        self.on_answer: Callable[[], None] = lambda: None

    def busy(self) -> frozenset[str] | None:
        """Return the GPUs that somebody computes on; None where that is being asked, and `on_answer` will tell."""
        if time.monotonic() - self._since <= _FRESH:
            return self._known
        if self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self._find_out())
        return None

    async def _find_out(self) -> None:
        self._known = await asyncio.to_thread(self._ask)
        self._since = time.monotonic()
        self.on_answer()
