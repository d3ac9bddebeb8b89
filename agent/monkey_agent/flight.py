"""Work that many ask for at once, and that is done once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Flights(Generic[T]):
    """What is under way, by name."""

    def __init__(self) -> None:
        """Start with nothing under way."""
        self._tasks: dict[str, asyncio.Task[T]] = {}

    async def join(self, name: str, work: Callable[[], Awaitable[T]]) -> T:
        """Return what `work` returns, or what the one under way under this name will; so for what it raises.

        Who is cancelled leaves the others their result.
        """
        task = self._tasks.get(name)
        if task is None:
            task = self._tasks[name] = asyncio.ensure_future(_run(work))
            task.add_done_callback(lambda done: self._landed(name, done))
        return await asyncio.shield(task)

    def _landed(self, name: str, task: asyncio.Task[T]) -> None:
        del self._tasks[name]
        if not task.cancelled():
            task.exception()  # seen, though everybody who asked may be gone

    async def close(self) -> None:
        """Cancel all that is under way."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run(work: Callable[[], Awaitable[T]]) -> T:
    return await work()
