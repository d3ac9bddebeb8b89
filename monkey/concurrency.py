"""Concurrent work: many coroutines at once, of which the first error ends all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

_T = TypeVar("_T")


async def run_all(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all at once. The first error ends the others, and passes through once they have ended.

    (`asyncio.TaskGroup` would wrap the error in a group.)
    """
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_in_lanes(items: Iterable[_T], work: Callable[[_T], Awaitable[None]], lanes: int) -> None:
    """Do `work` for each item, at most `lanes` at once. The first error ends all, and passes through."""
    waiting = iter(items)
    await run_all(_run_lane(waiting, work) for _ in range(lanes))


async def _run_lane(waiting: Iterator[_T], work: Callable[[_T], Awaitable[None]]) -> None:
    for item in waiting:
        await work(item)
