"""An agent for tests to kill: runs the commands that it is given, and waits."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from body import Body


async def main(place: str, *commands: str) -> None:
    """Start every command as a job of its own."""
    body = Body(Path(place))
    for command in commands:
        await body.start(["sh", "-c", command])
    (Path(place) / "ready").touch()
    await asyncio.sleep(3600)


asyncio.run(main(*sys.argv[1:]))
