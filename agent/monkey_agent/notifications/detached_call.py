"""Calls that may hang, each in a thread that is not waited for at exit: a server may answer drop by drop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

_Answer = TypeVar("_Answer")


async def run_detached_call(function: Callable[..., _Answer], /, *arguments: object) -> _Answer:
    """Return what the function returns, or raise what it raises; who is cancelled leaves it to itself."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Answer] = loop.create_future()

    def settle(answer: _Answer | None, failed: Exception | None) -> None:
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
