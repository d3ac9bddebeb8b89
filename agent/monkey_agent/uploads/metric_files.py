"""The metrics of a running job: its files, read as they grow, and folded into a summary."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Collection, Iterator
from typing import Any

from monkey.metrics.summary import MetricSummary
from monkey.metrics.usage import SKIPPED_LINES
from monkey.store.keys import is_encodable
from monkey.untrusted_files import HeldDirectory, open_regular
from monkey_agent.uploads.attempt_history import AttemptHistory

#: Bytes that are read at once: some milliseconds of parsing, so that heartbeats are not late for it.
_PIECE_BYTES = 256 * 1024


class MetricFiles:
    """What is in $MONKEY_METRICS_DIR."""

    def __init__(
        self,
        directory: str,
        watch: Callable[[str, float, int | None], None] | None = None,
        needed: Collection[str] = (),
        history: AttemptHistory | None = None,
    ) -> None:
        """Read the files in `directory`, which may not be there yet; `watch` and `needed` are as in `MetricSummary`.

        `history`: what the job continues.
        """
        self._directory, self._history = directory, history
        self._summary = MetricSummary(watch, needed)
        self._read: dict[str, int] = {}
        self._finished: dict[str, dict[str, Any]] | None = None

    @property
    def crowded(self) -> bool:
        """Were there too many metrics for all to be in the summary?"""
        return self._summary.crowded

    @property
    def skipped(self) -> dict[str, float]:
        """The number of lines and values that were no records, by its name; {} without any."""
        return {SKIPPED_LINES: self._summary.garbage} if self._summary.garbage else {}

    def names(self) -> list[str]:
        """Return the same names as `find_names`; none where the directory cannot be read."""
        with contextlib.suppress(OSError):
            return self.find_names()
        return []

    def find_names(self) -> list[str]:
        """Return the names of the regular files there; those that are no UTF-8 are no key, and none that we write.

        Raises OSError where the directory cannot be read; the job may have removed it.
        """
        with contextlib.suppress(FileNotFoundError), self._open() as found:
            return sorted(entry.name for entry in found if _is_kept(entry))
        return []

    @contextlib.contextmanager
    def _open(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """Open the directory, and give what is in it. Raises OSError."""
        with HeldDirectory(self._directory) as held, os.scandir(held.fd) as found:
            yield found

    def progress(self) -> dict[str, dict[str, Any]]:
        """Read a bit more, and return the summary so far."""
        if self._finished is not None:
            return self._finished
        left = _PIECE_BYTES
        for name in self.names():
            left -= self._feed(name, left)
            if left <= 0:
                break
        own = self._summary.result() if self._read else {}
        return self._history.continue_with(own, self._summary.first_step) if self._history else own

    def sizes(self) -> dict[str, int]:
        sizes = {}
        with contextlib.suppress(OSError), self._open() as found:
            for entry in filter(_is_kept, found):
                with contextlib.suppress(OSError):
                    sizes[entry.name] = entry.stat(follow_symlinks=False).st_size
        return sizes

    async def finish(self) -> dict[str, dict[str, Any]]:
        """Read the rest, and return the summary of all."""
        if self._finished is None:
            for name in self.names():
                more = self._feed(name, _PIECE_BYTES)
                while more:
                    await asyncio.sleep(0)
                    more = self._feed(name, _PIECE_BYTES)
            own = self._summary.finish() if self._read else {}
            if self._history:
                own = await self._history.finish(own, self._summary.first_step)
            self._finished = own
        return self._finished

    def read(self, name: str, at: int, most: int) -> bytes:
        """Return up to `most` bytes of a file from `at` on; b"" where it cannot be read."""
        try:
            fd = open_regular(f"{self._directory}/{name}", os.O_RDONLY)
        except OSError:
            return b""
        try:
            return os.pread(fd, most, at)
        except OSError:
            return b""
        finally:
            os.close(fd)

    def _feed(self, name: str, most: int) -> int:
        at = self._read.get(name, 0)
        data = self.read(name, at, most)
        if data:
            self._summary.feed(data, name)
            self._read[name] = at + len(data)
        return len(data)


def _is_kept(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False) and is_encodable(entry.name)
