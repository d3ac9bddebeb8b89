"""Failures that are remembered for a while: 10,000 jobs must not try one after the other, nor fail for ever."""

from __future__ import annotations

import copy
import time
from typing import TypeVar

from monkey.errors import JobFailed

Failed = TypeVar("Failed", bound=JobFailed)

#: Seconds for which a failure is remembered.
REMEMBERED_SECONDS = 60.0


class RecentFailures:
    """What could not be had lately, by name."""

    def __init__(self, remembered: float = REMEMBERED_SECONDS) -> None:
        """Remember each for so many seconds."""
        self._remembered = remembered
        self._failed: dict[str, tuple[float, JobFailed]] = {}

    def check(self, name: str) -> None:
        """Raise JobFailed as the last time, if that is not long ago."""
        at, failed = self._failed.get(name, (0.0, None))
        if failed is not None and time.monotonic() - at < self._remembered:
            raise copy_error(failed)
        self._failed.pop(name, None)

    def remember(self, name: str, failed: JobFailed) -> JobFailed:
        """Note a failure, and return what to raise."""
        self._failed[name] = time.monotonic(), failed
        return copy_error(failed)

    def forget(self) -> None:
        """Forget them all."""
        self._failed.clear()


def copy_error(failed: Failed) -> Failed:
    """Return an error of one's own: one that is raised twice grows its traceback."""
    return copy.copy(failed)
