"""The files that a running attempt writes, as far as they were not shipped yet: its metrics, and its log."""

from __future__ import annotations

from collections.abc import Iterator

from monkey.protocol.record.shipment import LOG, METRICS, Piece, name_limited_log
from monkey_agent.logs.job_log import LogCursor
from monkey_agent.uploads.metric_files import MetricFiles

#: Pieces of the last half of a log with a limit, at least: what is removed at once when more has come.
_PARTS = 8


class UnshippedFiles:
    """What one attempt wrote and was not shipped yet."""

    def __init__(self, job: str, k: int, log: LogCursor, metrics: MetricFiles, limit: int = 0) -> None:
        """Start at the beginning of the log and of all files of metrics.

        `limit`: bytes that the log may have in the store, 0 for any number.
        """
        self._job, self._k, self._log, self._metrics, self._limit = job, k, log, metrics, limit
        self._taken: dict[str, int] = {}

    def take_metrics(self, most: int) -> Iterator[Piece]:
        """Yield up to `most` bytes of metrics that came since."""
        for name in self._metrics.names():
            if most <= 0:
                return
            at = self._taken.get(name, 0)
            if data := self._metrics.read(name, at, most):
                self._taken[name], most = at + len(data), most - len(data)
                yield Piece(self._job, self._k, METRICS + name, at, data)

    def take_log(self, most: int) -> Iterator[Piece]:
        """Yield up to `most` bytes of the log that came since; behind its first half, of the last half so far."""
        name, half = LOG, self._limit // 2
        if half and self._log.taken < half:
            most = min(most, half - self._log.taken)
        elif half:
            name, part = name_limited_log(self._limit), half // _PARTS
            most = min(most, part)
            if self._log.size - self._log.taken > half + part:
                self._log.skip_to(self._log.size - half)
        if most > 0 and self._log.size > self._log.taken:
            count, data = self._log.peek(most)
            at = self._log.given
            self._log.move(count, len(data))
            if data:
                yield Piece(self._job, self._k, name, at, data)
