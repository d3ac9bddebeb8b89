"""Single flights: work that many callers ask for at once, and that is done once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class _Flight(Generic[_T]):
    """One piece of work under way; `ending`: it was cancelled, as no caller waits for it any more."""

    __slots__ = ("ending", "task", "waiting")

    def __init__(self, task: asyncio.Task[_T]) -> None:
        self.task, self.waiting, self.ending = task, 0, False


class SingleFlight(Generic[_T]):
    """The work under way, by name."""

    def __init__(self) -> None:
        """Start without any work."""
        self._flights: dict[str, _Flight[_T]] = {}

    async def join(self, name: str, work: Callable[[], Awaitable[_T]]) -> _T:
        """Return the result of the work under way under this name, or else of `work`; raise its error.

        A cancelled caller leaves the others their result. The last cancelled caller cancels the work, and waits for its
        end.
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
        """Cancel all work under way, and wait for its end."""
        tasks = [flight.task for flight in self._flights.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run(work: Callable[[], Awaitable[_T]]) -> _T:
    return await work()


async def run_to_end(work: Callable[[], _T]) -> _T:
    """Return the result of `work`, done in another thread; a cancelled caller waits for the thread's end first.

    This is for work under a lock: a thread cannot be cancelled, and no other caller may get the lock before it ends.
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
