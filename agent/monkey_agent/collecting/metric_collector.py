"""The agent's side of a collector: starts it, has it look each second, and once more when the job has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from monkey.spec.job.metric_sources import MetricSource
from monkey_agent.collecting.reader_process import ReaderProcess
from monkey_agent.execution.workspace import Workspace


class MetricCollector(ReaderProcess):
    """The collector of one attempt."""

    def __init__(self, space: Workspace, sources: Sequence[MetricSource], note: Callable[[str], None]) -> None:
        """Start nothing yet; without sources, never."""
        trouble = "what `metrics: from` names could not be read for a while"
        super().__init__(space, "monkey_agent.collecting.collector", trouble, note)
        self._sources = sources

    def is_needed(self) -> bool:
        """See `ReaderProcess.is_needed`."""
        return bool(self._sources)

    def make_order(self) -> dict[str, Any]:
        """See `ReaderProcess.make_order`."""
        space = self._space
        return {
            "roots": [space.work, space.outputs, space.checkpoint],
            "log": space.log,
            "metrics": space.metrics,
            "sources": [source.to_json() for source in self._sources],
        }

    async def greet(self, process: asyncio.subprocess.Process) -> None:
        """See `ReaderProcess.greet`: its order is all that a collector needs."""
