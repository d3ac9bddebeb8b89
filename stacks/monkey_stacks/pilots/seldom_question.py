"""A question that waiting loops ask each second, and the engine hears once in half a minute."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from monkey.errors import FleetError

#: Seconds between two questions of one process: administrators count those of squeue.
BETWEEN_SECONDS = 30.0
T = TypeVar("T")


class SeldomQuestion(Generic[T]):
    """A question to an engine, and its last answer."""

    def __init__(self, ask: Callable[[], T], now: Callable[[], float] = time.monotonic) -> None:
        """Ask by `ask`, which may block; `now` returns seconds."""
        self._ask, self._now = ask, now
        self._lock = asyncio.Lock()
        self._at = float("-inf")
        self._answer: T | None = None
        self._failed: FleetError | None = None

    async def ask(self) -> T:
        """Return an answer that is not older than BETWEEN_SECONDS.

        Raises FleetError where the engine does not answer; then it is not asked sooner, either.
        """
        async with self._lock:
            known = self._answer is not None or self._failed is not None
            if not known or self._now() - self._at >= BETWEEN_SECONDS:
                await self._renew()
            if self._failed is not None:
                raise self._failed
            assert self._answer is not None
            return self._answer

    async def _renew(self) -> None:
        try:
            self.note(await asyncio.to_thread(self._ask))
        except FleetError as exc:
            self._at, self._failed = self._now(), exc

    def note(self, answer: T, age: float = 0.0) -> None:
        """Take an answer that came by another question; `age`: seconds that it counts as old."""
        self._at, self._answer, self._failed = self._now() - age, answer, None

    def forget(self) -> None:
        """Ask again the next time: the engine was changed."""
        self._answer = self._failed = None
