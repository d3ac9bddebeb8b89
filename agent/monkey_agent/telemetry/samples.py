"""What was sampled of one attempt: kept beside its log, shipped with what it leaves, and folded for its end."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import time
from collections.abc import Callable

from monkey.metrics.usage import ResourceUsage, write_sample
from monkey.untrusted_files import open_regular
from monkey_agent.supervisor.process import ProcessExit
from monkey_agent.telemetry.meters import ProcessUsage

#: Seconds that an attempt must have run for its end to tell what it used: below, it says nothing, in every record.
_LEAST = 1.0


class AttemptSamples:
    """The samples of one attempt."""

    def __init__(self, path: str, asked: int, look: Callable[[], None] = lambda: None) -> None:
        """Append to the file `path`; `asked`: bytes of memory that the job asked for, 0 for none.

        `look`: to be called when samples are taken, also where none can be taken of this attempt.
        """
        self.path, self._asked, self.look = path, asked, look
        self._usage = ResourceUsage()
        self._began = self._last = time.monotonic()
        self._cpu = 0.0
        self._count = 0

    def add(self, at: int, clock: float, use: ProcessUsage, gpus: dict[str, float]) -> dict[str, float]:
        """Take a sample, `at` in nanoseconds since the epoch; returns its fields.

        One that cannot be written is not kept.
        """
        spent, passed = use.cpu_seconds - self._cpu, clock - self._last
        self._cpu, self._last = use.cpu_seconds, clock
        fields: dict[str, float] = {**use._asdict(), **gpus}
        if passed > 0:
            fields["cpu_percent"] = round(100 * max(0.0, spent) / passed, 2)
        if self._asked:
            fields["memory_percent"] = round(100 * use.memory_bytes / self._asked, 2)
        self._usage.add(fields)
        self._count += 1
        try:
            fd = open_regular(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        except OSError:
            return fields
        try:
            os.write(fd, write_sample(at, fields))
        except OSError:
            pass  # the disk is full: the job will say so
        finally:
            os.close(fd)
        return fields

    def progress(self) -> dict[str, float]:
        """Return what it used so far, as `ResourceUsage.result` has it; {} before the first sample."""
        return self._usage.result(self._last - self._began) if self._count else {}

    @property
    def any(self) -> bool:
        """Is there a file of them, of this life of the agent or an earlier one?"""
        try:
            return stat.S_ISREG(os.lstat(self.path).st_mode)  # asked for every job: who opens it looks again
        except OSError:
            return False

    def _earlier(self) -> bytes:
        with open(open_regular(self.path, os.O_RDONLY), "rb") as file:  # noqa: PTH123
            return file.read()

    async def finish(self, how: ProcessExit) -> dict[str, float]:
        """Return what it used in all."""
        if how.seconds < _LEAST:
            return {}
        if not self._count and self.any:
            self._usage.feed(await asyncio.to_thread(self._earlier))
        peak = max(how.over, how.peak * (1 if sys.platform == "darwin" else 1024))
        return self._usage.result(how.seconds, how.cpu, peak)
