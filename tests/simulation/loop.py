"""An asyncio event loop on a virtual clock: it never waits, it jumps to the next timer."""

from __future__ import annotations

import asyncio
from typing import Any


class Stuck(Exception):
    """Nothing is left that could ever happen."""


class _Selector:
    """Instead of waiting for file descriptors, moves the clock."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Stuck
        self.loop.moment += timeout
        return []

    def close(self) -> None:
        pass


class VirtualLoop(asyncio.base_events.BaseEventLoop):
    """BaseEventLoop's own scheduling, on time that passes only when nothing is ready."""

    def __init__(self) -> None:
        super().__init__()
        self.moment = 0.0
        self._selector = _Selector(self)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self.moment

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass
