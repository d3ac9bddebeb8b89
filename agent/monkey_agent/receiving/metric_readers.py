"""All readers of one attempt's metrics, beside the files that its processes write themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from monkey.spec.job.metric_sources import MetricSource
from monkey_agent.collecting.metric_collector import MetricCollector
from monkey_agent.execution.workspace import Workspace
from monkey_agent.receiving.metric_receiver import MetricReceiver


class MetricReaders:
    """The collector of what a job writes in other forms, and the receiver of what it sends."""

    def __init__(self, space: Workspace, sources: Sequence[MetricSource], note: Callable[[str], None]) -> None:
        """Start nothing yet. `note` writes a line into the job's log."""
        self._collector, self._receiver = MetricCollector(space, sources, note), MetricReceiver(space, note)

    def tick(self) -> None:
        """Do the work of every second. The receiver begins by itself."""
        self._collector.tick()

    async def catch_up(self) -> None:
        """Have all that was logged by now in the metrics files, before a checkpoint goes to the store."""
        await self._collector.catch_up()
        await self._receiver.catch_up()

    async def finish(self) -> None:
        """Have all that was logged in the metrics files, as the job has ended."""
        await self._collector.finish()
        await self._receiver.finish()
