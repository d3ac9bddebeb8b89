"""The meter of jobs: CPU, memory and disk of all processes of each job, whatever their parents.

A job's processes are its first one and that one's descendants. If the parent of one dies, it comes to the supervisor,
and is known by its session or its mark. The usage of an ended process is in the counts of a parent that waited for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping

from monkey.processes.container_usage import list_contained
from monkey.processes.process_tree import (
    HAS_PROC,
    list_children,
    list_descendants,
    read_marked_key,
    read_proc,
    read_session,
)
from monkey_agent.telemetry.meters import JobMeter, ProcessUsage

#: Part of the time that exact counts of shared memory may take: those of a job of 100 GB take a quarter of a second.
EXACT = 1 / 500
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def make_job_meter(state: str) -> JobMeter:
    """Return the meter of jobs on this machine, for the agent whose state directory is `state`."""
    if HAS_PROC:
        return ProcJobMeter(state)
    from monkey_agent.telemetry.psutil_meters import PortableJobMeter

    return PortableJobMeter()


class ProcJobMeter:
    """The meter of jobs on a machine with Linux."""

    def __init__(self, state: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Recognise the marks of the agent with the state directory `state`."""
        self._state, self._clock = state, clock
        self._counted: dict[int, JobCounters] = {}
        self._shared: dict[int, SharedMemory] = {}

    def read(self, supervisor: int, mains: Mapping[int, int]) -> dict[int, ProcessUsage]:
        """See `JobMeter.read`."""
        found = {}
        for key, roots in self._roots(supervisor, mains).items():
            pids = roots + list_descendants(roots)
            if list_contained(roots[:1]):
                pids = list_contained(pids)  # without the runtime's client
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
                owner = keys.get(read_session(orphan)) or read_marked_key(orphan, self._state)
                if owner in roots:
                    roots[owner].append(orphan)
        return roots

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
    """A counter over the processes of a job. Their sum falls when one ends without a wait; the counter does not."""

    def __init__(self) -> None:
        """Start at 0."""
        self._last = self._total = 0.0

    def up_to(self, now: float) -> float:
        """Update the counter by the sum `now`; return the total so far."""
        self._total += max(0.0, now - self._last)
        self._last = now
        return self._total


class JobCounters:
    """The counters of one job."""

    def __init__(self) -> None:
        """Start at 0."""
        self.cpu, self.read, self.written = ProcessCounter(), ProcessCounter(), ProcessCounter()


class SharedMemory:
    """The memory of one job: pages that several processes share count once, as far as exact counts are cheap."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start with an exact count."""
        self._clock = clock
        self._again = float("-inf")
        #: The job's true memory as a part of the sum over its processes, by the last exact count.
        self._part = 1.0

    def memory(self, resident: Iterable[tuple[int, int]]) -> int:
        """Return the bytes that the job's processes hold; `resident`: (pid, its resident bytes) of each."""
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
    """Return the fields of /proc/PID/stat from the third on; [] for a process that is gone."""
    return read_proc(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _moved(pid: int) -> tuple[int, int]:
    """Return the bytes that a process read from disks and wrote to them; 0 where we may not know."""
    told = dict(line.split(b": ") for line in read_proc(f"/proc/{pid}/io").splitlines())
    return int(told.get(b"read_bytes", 0)), int(told.get(b"write_bytes", 0))


def _proportional(pid: int, has: int) -> int:
    """Return a process's bytes, with its share of memory that others have, too; all (`has`) where we may not know."""
    for line in read_proc(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return has
