"""What each job uses: CPU, memory and disk of all its processes, wherever those have wandered.

A job's processes are what its first one started and, where their parents died, what came to the supervisor and is known
by its session or its mark. What a process used that has ended and was waited for is in its parent's counts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping

from monkey.processes.process_tree import (
    HAS_PROC,
    list_children,
    list_descendants,
    read_mark,
    read_proc,
    read_session,
)
from monkey_agent.telemetry.meters import JobMeter, ProcessUsage

#: The part of the time that may go into exact counts of shared memory: a job of 100 GB takes a quarter of a second.
EXACT = 1 / 500
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def job_meter(state: str) -> JobMeter:
    """Return the meter of this machine, for the agent whose state directory it is."""
    if HAS_PROC:
        return ProcJobMeter(state)
    from monkey_agent.telemetry.psutil_meters import PortableJobMeter

    return PortableJobMeter()


class ProcJobMeter:
    """Linux."""

    def __init__(self, state: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Know the marks of the agent with the state directory `state`."""
        self._state, self._clock = state, clock
        self._counted: dict[int, JobCounters] = {}
        self._shared: dict[int, SharedMemory] = {}

    def read(self, supervisor: int, mains: Mapping[int, int]) -> dict[int, ProcessUsage]:
        """See `JobMeter.read`."""
        found = {}
        for key, roots in self._roots(supervisor, mains).items():
            pids = roots + list_descendants(roots)
            told = [(pid, fields) for pid in pids if (fields := _stat(pid))]
            if told:
                found[key] = self._use(key, told)
        for known in (self._counted, self._shared):
            for gone in known.keys() - mains.keys():
                del known[gone]
        return found

    def _roots(self, supervisor: int, mains: Mapping[int, int]) -> dict[int, list[int]]:
        roots = {key: [pid] for key, pid in mains.items()}
        keys = {pid: key for key, pid in mains.items()}
        for orphan in list_children(supervisor) if supervisor else ():
            if orphan not in keys:
                owner = keys.get(read_session(orphan)) or self._marked(orphan)
                if owner in roots:
                    roots[owner].append(orphan)
        return roots

    def _marked(self, pid: int) -> int:
        state, _, key = (read_mark(pid) or "").rpartition(":")
        return int(key) if state == self._state and key.isdigit() else 0

    def _use(self, key: int, told: list[tuple[int, list[bytes]]]) -> ProcessUsage:
        cpu = sum(sum(map(int, fields[11:15])) for _, fields in told) / _TICKS
        moved = [_moved(pid) for pid, _ in told]
        counted = self._counted.setdefault(key, JobCounters())
        resident = [(pid, int(fields[21]) * _PAGE) for pid, fields in told]
        return ProcessUsage(
            round(counted.cpu.up_to(cpu), 2),
            self._shared.setdefault(key, SharedMemory(self._clock)).memory(resident),
            int(counted.read.up_to(sum(bytes_read for bytes_read, _ in moved))),
            int(counted.written.up_to(sum(written for _, written in moved))),
        )


class ProcessCounter:
    """A sum over processes: it falls when one goes that nobody waited for, and what it had used was used."""

    def __init__(self) -> None:
        """Begin at 0."""
        self._last = self._total = 0.0

    def up_to(self, now: float) -> float:
        """Take the sum as it is now; returns what was used in all."""
        self._total += max(0.0, now - self._last)
        self._last = now
        return self._total


class JobCounters:
    """The counters of one job."""

    def __init__(self) -> None:
        """Begin at 0."""
        self.cpu, self.read, self.written = ProcessCounter(), ProcessCounter(), ProcessCounter()


class SharedMemory:
    """The memory of one job: pages that several processes have count once, as far as looking closely is cheap."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Look closely at first."""
        self._clock = clock
        self._again = float("-inf")
        #: What is truly held of what the processes have in sum.
        self._part = 1.0

    def memory(self, resident: Iterable[tuple[int, int]]) -> int:
        """Return the bytes that processes hold, given as (pid, what it has)."""
        known = dict(resident)
        whole = sum(known.values())
        began = self._clock()
        if len(known) == 1 or not whole:
            return whole
        if began >= self._again:
            held = sum(_proportional(pid, has) for pid, has in known.items())
            self._part = min(1.0, held / whole)
            now = self._clock()
            self._again = now + (now - began) / EXACT
        return int(whole * self._part)


def _stat(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat from the third on; [] for one that is gone or a zombie of no memory."""
    return read_proc(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _moved(pid: int) -> tuple[int, int]:
    """Return the bytes that a process had from disks and gave to them; 0 where that is not ours to know."""
    told = dict(line.split(b": ") for line in read_proc(f"/proc/{pid}/io").splitlines())
    return int(told.get(b"read_bytes", 0)), int(told.get(b"write_bytes", 0))


def _proportional(pid: int, has: int) -> int:
    """Return a process's share of the memory that it has with others; all of it where that is not ours to know."""
    for line in read_proc(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return has
