"""The metrics of a running job: its files, read as they grow, and folded into a summary."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection
from typing import Any

from monkey.metrics.summary import MetricSummary
from monkey.store.keys import is_encodable
from monkey.untrusted_files import open_regular, stat_directory

#: Bytes that are read at once: some milliseconds of parsing, so that heartbeats are not late for it.
_PIECE_BYTES = 256 * 1024


class MetricFiles:
    """What is in $MONKEY_METRICS_DIR."""

    def __init__(
        self,
        directory: str,
        watch: Callable[[str, float, int | None], None] | None = None,
        needed: Collection[str] = (),
    ) -> None:
        """Read the files in `directory`, which may not be there yet; `watch` and `needed` are as in `MetricSummary`."""
        self._directory = directory
        self._summary = MetricSummary(watch, needed)
        self._read: dict[str, int] = {}
        self._finished: dict[str, dict[str, Any]] | None = None

    @property
    def crowded(self) -> bool:
        """Were there too many metrics for all to be in the summary?"""
        return self._summary.crowded

    def names(self) -> list[str]:
        """Return the names of the regular files there; those that are no UTF-8 are no key, and none that we write."""
        try:
            stat_directory(self._directory)
            with os.scandir(self._directory) as found:
                files = (entry.name for entry in found if entry.is_file(follow_symlinks=False))
                return sorted(filter(is_encodable, files))
        except OSError:
            return []

    def progress(self) -> dict[str, dict[str, Any]]:
        """Read a bit more, and return the summary so far."""
        if self._finished is not None:
            return self._finished
        left = _PIECE_BYTES
        for name in self.names():
            left -= self._feed(name, left)
            if left <= 0:
                break
        return self._summary.result() if self._read else {}

    async def finish(self) -> dict[str, dict[str, Any]]:
        """Read the rest, and return the summary of all."""
        if self._finished is None:
            for name in self.names():
                more = self._feed(name, _PIECE_BYTES)
                while more:
                    await asyncio.sleep(0)
                    more = self._feed(name, _PIECE_BYTES)
            self._finished = self._summary.finish() if self._read else {}
        return self._finished

    def _feed(self, name: str, most: int) -> int:
        try:
            fd = open_regular(f"{self._directory}/{name}", os.O_RDONLY)
        except OSError:
            return 0
        try:
            at = self._read.get(name, 0)
            data = os.pread(fd, most, at)
        except OSError:
            return 0
        finally:
            os.close(fd)
        if data:
            self._summary.feed(data, name)
            self._read[name] = at + len(data)
        return len(data)
