"""The supervisor's jobs, and the processes that belong to each, whatever their parent, session and group."""

from __future__ import annotations

import os
import time

from monkey.processes.process_tree import (
    CONT,
    HAS_PROC,
    LISTS_CHILDREN,
    STOP,
    list_descendants,
    read_group,
    read_marked_key,
    read_session,
    read_start_time,
    send_group,
    send_signal,
)

TYPE_CHECKING = False
if TYPE_CHECKING:  # the supervisor starts without either
    import resource

#: Seconds by which the kernel's record of a process's start may be too early: it counts in ticks.
TICK = 0.02


class SupervisedJob:
    """One job, from its launch until its end is reported."""

    __slots__ = (
        "active",
        "began",
        "cpu",
        "entry",
        "held",
        "hunted",
        "key",
        "name",
        "peak",
        "pid",
        "since",
        "status",
        "touched",
    )

    def __init__(self, key: int, name: str, pid: int, began: float, entry: int) -> None:
        self.key, self.name, self.pid, self.began, self.entry = key, name, pid, began, entry
        #: Seconds that it ran until it was last halted, and since when it runs (None: it is frozen, or its first
        #: process is gone). Both are by a clock that stops while the machine sleeps, as the job does.
        self.active = 0.0
        self.since: float | None = time.monotonic()
        #: Whether the agent signalled it: then its end is not its own.
        self.touched = False
        #: Whether the agent froze it.
        self.held = False
        #: Since when all its processes are being killed; 0 if they are not.
        self.hunted = 0.0
        #: The value of os.waitstatus_to_exitcode, once its first process was reaped.
        self.status: int | None = None
        #: The first process's ru_maxrss, and its CPU time with that of the children that it waited for.
        self.peak, self.cpu = 0, 0.0

    def ran(self) -> float:
        """Return the seconds that the job ran so far."""
        return self.active + (0.0 if self.since is None else time.monotonic() - self.since)

    def exited(self, status: int, usage: resource.struct_rusage) -> None:
        """Note the exit of the job's first process, which was reaped."""
        self.halt()
        self.status = os.waitstatus_to_exitcode(status)
        self.peak, self.cpu = usage.ru_maxrss, usage.ru_utime + usage.ru_stime

    def halt(self) -> None:
        """Stop counting the seconds that the job runs."""
        self.active, self.since = self.ran(), None


class SupervisedJobs:
    """All jobs whose end is not reported, by key; `mains`: those whose first process is not reaped, by its pid."""

    def __init__(self, state: str) -> None:
        self.state = state
        self.by_key: dict[int, SupervisedJob] = {}
        self.mains: dict[int, SupervisedJob] = {}
        #: Processes that did not die when they were killed (a dead network disk): no later job waits for them.
        self.hopeless: set[int] = set()
        own = f"/proc/self/task/{os.getpid()}/children"
        self._children = os.open(own, os.O_RDONLY | os.O_CLOEXEC) if LISTS_CHILDREN else -1

    def orphans(self) -> list[int]:
        """Return our children that are no job's first process: we became their parent when theirs died."""
        if self._children >= 0:
            pids = [int(pid) for pid in os.pread(self._children, 1 << 20, 0).split()]
        elif HAS_PROC:
            ours = list_descendants([os.getpid()])
            below = set(list_descendants(ours))
            pids = [pid for pid in ours if pid not in below]
        else:
            return []
        return [pid for pid in pids if pid not in self.mains and pid not in self.hopeless]

    def members(self, job: SupervisedJob) -> list[int]:
        """Return all processes of a job, without a first one that was reaped."""
        roots = [pid for pid in self.orphans() if self._belongs(pid, job)]
        if job.status is None:
            roots.append(job.pid)
        return roots + list_descendants(roots)

    def _belongs(self, pid: int, job: SupervisedJob) -> bool:
        """Return whether an orphan is this job's: by its session, its mark, or because no other can have made it."""
        leader = read_session(pid)
        for other in self.by_key.values():
            if other.pid == leader:
                return other is job
        over = job.status is not None
        key = read_marked_key(pid, self.state)
        if key is not None:
            # Of a job that is not known any more: it goes with whoever ends next.
            return key == job.key or (over and key not in self.by_key)
        # It hides whose it is (`env -i`, a title over its environment). Never take it from a job that may be its own.
        born = read_start_time(pid)
        rivals = (other for other in self.by_key.values() if other is not job and other.status is None)
        return over and born is not None and all(other.began > born + TICK for other in rivals)

    def signal(self, job: SupervisedJob, number: int) -> None:
        """Signal a job's process group at once, then its processes that have left the group."""
        if job.status is None:
            send_group(job.pid, number)
        for pid in self.members(job):
            if job.status is not None or read_group(pid) != job.pid:
                send_signal(pid, number)

    def freeze(self, job: SupervisedJob) -> None:
        """Stop all processes of a job, and look again until no new one is found: a stopped process cannot fork."""
        job.halt()
        if job.status is None:
            send_group(job.pid, STOP)
        stopped: set[int] = set()
        while new := set(self.members(job)) - stopped:
            for pid in new:
                send_signal(pid, STOP)
            stopped |= new

    def freeze_all(self) -> None:
        """Stop every descendant, of any job or none."""
        for job in self.by_key.values():
            self.freeze(job)
        stopped: set[int] = set()
        while new := set(list_descendants([os.getpid()])) - stopped:
            for pid in new:
                send_signal(pid, STOP)
            stopped |= new

    def go_on(self, job: SupervisedJob) -> None:
        """Let all processes of a job continue."""
        if job.since is None and job.status is None:
            job.since = time.monotonic()
        self.signal(job, CONT)

    def go_on_unknown(self) -> None:
        """Let orphans without a known job continue, which `freeze_all` stopped."""
        known = {pid for job in self.by_key.values() for pid in self.members(job)}
        for pid in set(list_descendants([os.getpid()])) - known:
            send_signal(pid, CONT)
