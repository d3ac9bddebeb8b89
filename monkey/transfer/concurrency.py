"""Doing the same to many things, a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeVar

_T = TypeVar("_T")


async def in_lanes(items: Iterable[_T], work: Callable[[_T], Awaitable[None]], lanes: int) -> None:
    """Do `work` for each item, `lanes` of them at a time. The first error ends all, and passes through."""
    waiting = iter(items)
    tasks = [asyncio.ensure_future(_lane(waiting, work)) for _ in range(lanes)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _lane(waiting: Iterator[_T], work: Callable[[_T], Awaitable[None]]) -> None:
    for item in waiting:
        await work(item)
