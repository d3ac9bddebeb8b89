"""Work that many ask for at once, and that is done once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class _Flight(Generic[_T]):
    """One piece of work under way; `ending` when no caller waits for it any more."""

    __slots__ = ("ending", "task", "waiting")

    def __init__(self, task: asyncio.Task[_T]) -> None:
        self.task, self.waiting, self.ending = task, 0, False


class SingleFlight(Generic[_T]):
    """What is under way, by name."""

    def __init__(self) -> None:
        """Start with nothing under way."""
        self._flights: dict[str, _Flight[_T]] = {}

    async def join(self, name: str, work: Callable[[], Awaitable[_T]]) -> _T:
        """Return what `work` returns, or what the one under way under this name will; so for what it raises.

        Who is cancelled leaves the others their result. The last one who is cancels the work, and waits for its end.
        """
        while (found := self._flights.get(name)) is not None and found.ending:
            await asyncio.wait([found.task])
        flight = found or self._begin(name, work)
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                flight.ending = True
                flight.task.cancel()
                await asyncio.wait([flight.task])

    def _begin(self, name: str, work: Callable[[], Awaitable[_T]]) -> _Flight[_T]:
        flight = self._flights[name] = _Flight(asyncio.ensure_future(_run(work)))
        flight.task.add_done_callback(lambda done: self._landed(name, done))
        return flight

    def _landed(self, name: str, task: asyncio.Task[_T]) -> None:
        del self._flights[name]
        if not task.cancelled():
            task.exception()  # seen, though everybody who asked may be gone

    async def close(self) -> None:
        """Cancel all that is under way."""
        tasks = [flight.task for flight in self._flights.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run(work: Callable[[], Awaitable[_T]]) -> _T:
    return await work()


async def to_its_end(work: Callable[[], _T]) -> _T:
    """Return what `work` does in another thread, which cannot be cancelled: who is waits for it, then goes.

    For work under a lock: nobody is to have that while the thread continues.
    """
    thread = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        while not thread.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([thread])
        if not thread.cancelled():
            thread.exception()  # seen
        raise
