"""What Pulumi's library leaves of programs that ran in this process.

Where a resource failed, it stops the program's event loop, again while it cleans up after itself, and so leaves the
loop open, with its sockets and threads (LanguageServer.Run, pulumi 3.232). Whichever test comes later would be told.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from types import FrameType
from typing import Any

from pulumi.automation._server import LanguageServer

from tests.acceptance.shop import until


def close() -> None:
    """Close the loops of all programs, once those have ended."""
    until(lambda: not any(map(_in_program, sys._current_frames().values())), "Pulumi's programs have ended")
    for loop in [each for each in gc.get_objects() if isinstance(each, asyncio.BaseEventLoop)]:
        handler = loop.get_exception_handler()
        if not loop.is_closed() and isinstance(getattr(handler, "__self__", None), LanguageServer):
            loop.set_exception_handler(lambda loop, context: None)
            loop.run_until_complete(_end(asyncio.all_tasks(loop)))
            loop.close()


async def _end(tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()


def _in_program(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code is LanguageServer.Run.__code__:
            return True
        frame = frame.f_back
    return False
