"""Concurrent work: many coroutines at once, of which the first error ends all; and calls that may hang."""

from __future__ import annotations

import asyncio
import threading
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


async def run_detached_call(function: Callable[..., _T], /, *arguments: object) -> _T:
    """Return what the function returns, or raise what it raises; who is cancelled leaves it to itself.

    It runs in a thread that is not waited for at exit: a server may answer drop by drop.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def settle(answer: _T | None, failed: Exception | None) -> None:
        if not done.done():
            done.set_exception(failed) if failed else done.set_result(answer)  # type: ignore[arg-type]  # one is there

    def run() -> None:
        answer, failed = None, None
        try:
            answer = function(*arguments)
        except Exception as exc:
            failed = exc
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, answer, failed)

    threading.Thread(target=run, daemon=True).start()
    return await done
