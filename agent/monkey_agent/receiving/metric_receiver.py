"""The agent's side of a receiver, which is started by the first datagram: a job that sends nothing costs nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from monkey_agent.collecting.reader_process import ReaderProcess
from monkey_agent.execution.workspace import Workspace

#: Seconds that a receiver may take to start.
_START_SECONDS = 60.0


class MetricReceiver(ReaderProcess):
    """The receiver of one attempt."""

    def __init__(self, space: Workspace, note: Callable[[str], None]) -> None:
        """Start nothing before the first datagram."""
        trouble = "what was sent to the metrics sockets could not be read for a while, and some of it may be lost"
        super().__init__(space, "monkey_agent.receiving.receiver", trouble, note)
        self._sockets = space.sockets
        if self._sockets is not None:
            self.descriptors = (self._sockets.unix, self._sockets.udp)
            self._sockets.listen(self.tick)

    def is_needed(self) -> bool:
        """See `ReaderProcess.is_needed`."""
        return self._sockets is not None and self._sockets.is_used()

    def make_order(self) -> dict[str, Any]:
        """See `ReaderProcess.make_order`."""
        unix, udp = self.descriptors
        return {"metrics": self._space.metrics, "unix": unix, "udp": udp}

    async def greet(self, process: asyncio.subprocess.Process) -> None:
        """Hand over what came by UDP until the receiver was ready. Raises OSError, TimeoutError."""
        assert self._sockets is not None and process.stdin is not None and process.stdout is not None
        if not await asyncio.wait_for(process.stdout.readline(), _START_SECONDS):
            raise OSError("the process could not be started")
        held = [data.decode("latin-1") for data in self._sockets.take_held()]
        process.stdin.write(json.dumps(held).encode() + b"\n")

    async def finish(self) -> None:
        """See `ReaderProcess.finish`."""
        await super().finish()
        if self._sockets is not None:
            self._sockets.listen(None)
