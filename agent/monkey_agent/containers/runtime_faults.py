"""Faults of a runtime that answers, but starts no containers: its jobs rest here, and others may have them.

A fault counts for the jobs of one image and of the same resources. A sweep may ask what no runtime gives, which is to
hold up no other. Pauses grow, so that no agent claims and releases jobs in a circle.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from monkey.spec.job.recipe import JobResources
from monkey.spec.yaml.units import format_duration

#: Seconds for which jobs rest after a fault; each further one doubles them, up to the most.
PAUSE_SECONDS, MAX_PAUSE_SECONDS = 60.0, 960.0
#: Seconds after a pause, from which on a fault is the first again.
_FORGOTTEN_SECONDS = 3600.0


class StartedKind(NamedTuple):
    """The containers that a runtime is to start in the same way."""

    image: str
    resources: JobResources


@dataclass(frozen=True)
class _Fault:
    why: str
    #: When the pause after it is over.
    until: float
    #: Number of faults in a row, and of faults of all kinds before and with it.
    row: int
    number: int


class RuntimeFaults:
    """The faults of this machine's runtime since it last started a container of each kind."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Start without any; `now` returns seconds."""
        self._now = now
        self._faults: dict[StartedKind, _Fault] = {}
        #: Number of faults so far.
        self.count = 0

    def note(self, kind: StartedKind, why: str) -> None:
        """Note that a container was not started; of several during one pause, the first counts."""
        now, before = self._now(), self._faults.get(kind)
        if before is not None and now < before.until:
            return
        row = before.row + 1 if before is not None and now - before.until < _FORGOTTEN_SECONDS else 1
        pause = min(PAUSE_SECONDS * 2.0 ** (row - 1), MAX_PAUSE_SECONDS)
        self.count += 1
        told = f"its image cannot be run: {why}; it is tried again after {format_duration(pause)}"
        self._faults[kind] = _Fault(told, now + pause, row, self.count)

    def note_begun(self, kind: StartedKind, count: int) -> None:
        """Note that a container began; `count`: the number of faults when it was asked for."""
        if self.is_ended_by(kind, count):
            del self._faults[kind]

    def is_ended_by(self, kind: StartedKind, count: int) -> bool:
        """Return whether there is a fault that a container ends once it begins; `count`: as `note_begun` has it."""
        fault = self._faults.get(kind)
        return fault is not None and fault.number <= count

    def find_rest(self, kind: StartedKind) -> str:
        """Return why jobs of this kind rest here after a first fault, in words; "" if they do not."""
        fault = self._find(kind)
        return fault.why if fault is not None and fault.row == 1 else ""

    def find_lack(self, kind: StartedKind) -> str:
        """Return why they rest after faults in a row, in words; "" if they do not. Others need not wait then."""
        fault = self._find(kind)
        return fault.why if fault is not None and fault.row > 1 else ""

    def _find(self, kind: StartedKind) -> _Fault | None:
        if not self._faults:  # asked of all sweeps for each job that is begun
            return None
        fault = self._faults.get(kind)
        return fault if fault is not None and self._now() < fault.until else None
