"""The supervisor's jobs, and the processes that belong to each, whatever their parent, session and group."""

from __future__ import annotations

import os
import time

from monkey.processes.container_usage import find_first_contained, read_container_usage
from monkey.processes.process_tree import (
    CONT,
    HAS_PROC,
    KILL,
    LISTS_CHILDREN,
    STOP,
    is_working,
    list_children,
    list_descendants,
    list_processes,
    read_cpu_seconds,
    read_group,
    read_marked_key,
    read_proc,
    read_session,
    read_start_time,
    send_group,
    send_signal,
)
from monkey_agent.supervisor.shared_state import EXCEEDED, NOTHING, OWN, SIGNALLED

TYPE_CHECKING = False
if TYPE_CHECKING:  # the supervisor starts without either
    import resource
    from collections.abc import Iterator

    from monkey.processes.memory_groups import MemoryGroup

#: Seconds by which the kernel's record of a process's start may be too early: it counts in ticks.
TICK = 0.02
#: Seconds after which the end of a job is reported though a process cannot be killed (a dead network disk).
_PATIENCE_SECONDS = 5.0
#: Seconds between looks at what a job left. What neither wrote nor used so much CPU time in between is idle: daemons
#: that wait use less.
LINGER, _WORK_SECONDS = 0.5, 0.125
#: Names of shells, which end at once by SIGTERM whatever they run.
_SHELLS = (b"ash", b"bash", b"busybox", b"dash", b"ksh", b"sh", b"zsh")
#: Seconds by which a supervisor may wake too late on a busy machine; by more if it was stopped.
_LATE_SECONDS = 2.0


class SupervisedJob:
    """One job, from its launch until its end is reported."""

    __slots__ = (
        "active",
        "apart",
        "asked",
        "began",
        "children",
        "cpu",
        "cpu_seen",
        "cut",
        "entry",
        "exact_at",
        "grace",
        "group",
        "held",
        "hunted",
        "key",
        "limit",
        "linger_at",
        "linger_until",
        "lingered",
        "log",
        "log_seen",
        "look_at",
        "name",
        "over",
        "peak",
        "pid",
        "report",
        "since",
        "status",
        "touched",
    )

    def __init__(
        self, key: int, name: str, pid: int, began: float, entry: int, log: str = "", grace: float = 0
    ) -> None:
        self.key, self.name, self.pid, self.began, self.entry = key, name, pid, began, entry
        #: Its output, and the seconds that its other processes may work on when the first one has ended.
        self.log, self.grace = log, grace
        #: How many of them were ended then, and whether they still worked.
        self.lingered, self.cut = 0, False
        #: When to look at them again, and until when they may run; the CPU time and size of the log when last seen.
        self.linger_at = self.linger_until = self.cpu_seen = 0.0
        self.log_seen = -1
        #: Whether processes of it may be no descendants of ours: those of a container may be a daemon's.
        self.apart = False
        #: Where its container leaves what it used, see USAGE_REPORT; None for a job without a runtime's client.
        self.report: str | None = None
        #: Seconds that it ran until it was last halted, and since when it runs (None: it is frozen, or its first
        #: process is gone). Both are by a clock that stops while the machine sleeps, as the job does.
        self.active = 0.0
        self.since: float | None = time.monotonic()
        #: Whether the agent signalled it: then its end is not its own.
        self.touched = False
        #: Its processes when it was asked to stop: one that hides and loses its parent by that is still known.
        self.asked: set[int] = set()
        #: What its shell ran then, without those that ended with an exit code since; None if that is not known.
        self.children: set[int] | None = None
        #: Whether the agent froze it.
        self.held = False
        #: Since when all its processes are being killed; 0 if they are not.
        self.hunted = 0.0
        #: The value of os.waitstatus_to_exitcode, once its first process was reaped.
        self.status: int | None = None
        #: The first process's ru_maxrss, and its CPU time with that of the children that it waited for. A container has
        #: the most KiB and the CPU time of all its processes, 0 where they are not known.
        self.peak, self.cpu = 0, 0.0
        #: Bytes that it may hold (0: any number), and its control group, where the kernel sees to that.
        self.limit = 0
        self.group: MemoryGroup | None = None
        #: Bytes that it held when it took more than its limit; 0 if it did not.
        self.over = 0
        #: By the monotonic clock: when to look at its memory again, and from when on exactly.
        self.look_at = self.exact_at = 0.0

    def ran(self) -> float:
        """Return the seconds that the job ran so far."""
        return self.active + (0.0 if self.since is None else time.monotonic() - self.since)

    def exited(self, status: int, usage: resource.struct_rusage) -> None:
        """Note the exit of the job's first process, which was reaped."""
        self.halt()
        self.status = os.waitstatus_to_exitcode(status)
        if self.report is None:
            self.peak, self.cpu = usage.ru_maxrss, usage.ru_utime + usage.ru_stime
            return
        inside = read_container_usage(self.report)
        self.peak, self.cpu = inside.peak >> 10, inside.cpu
        if inside.killed and self.limit:
            self.over = self.over or max(inside.peak, 1)

    @property
    def worth(self) -> int:
        """Return what its exit is worth to an agent's successor.

        Nothing if it left work that was ended. Nor what a signal ended, unless the agent lives to hear of it: the
        signal may have been for everything here.
        """
        if self.touched or self.cut or self.status is None:
            return NOTHING
        return EXCEEDED if self.over else OWN if 0 <= self.status < SIGNALLED else NOTHING

    def halt(self) -> None:
        """Stop counting the seconds that the job runs."""
        self.active, self.since = self.ran(), None


class SupervisedJobs:
    """All jobs whose end is not reported, by key; `mains`: those whose first process is not reaped, by its pid."""

    def __init__(self, state: str) -> None:
        self.state = state
        self.by_key: dict[int, SupervisedJob] = {}
        self.mains: dict[int, SupervisedJob] = {}
        #: Jobs whose processes are being killed.
        self.hunted: dict[int, SupervisedJob] = {}
        #: Jobs whose first process has ended, and others not.
        self.lingering: dict[int, SupervisedJob] = {}
        #: Processes that did not die when they were killed (a dead network disk): no later job waits for them.
        self.hopeless: set[int] = set()
        self._woke = time.monotonic()
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
        if job.apart:
            roots += [pid for pid in list_processes() if read_marked_key(pid, self.state) == job.key]
        return list(dict.fromkeys(roots + list_descendants(roots)))

    def pass_over_stop(self, wait: float) -> None:
        """Do not count the time in which we were stopped with all jobs (`docker pause`).

        The supervisor calls this each time that it wakes, after at most `wait` seconds while jobs run.
        """
        now = time.monotonic()
        late, self._woke = now - self._woke - wait, now
        if late > _LATE_SECONDS:
            for job in self.by_key.values():
                if job.since is not None:
                    job.since = min(job.since + late, now)

    def find_firsts(self) -> dict[int, int]:
        """Return the first process of each job by its key: that of a container, not its runtime's client."""
        firsts = {job.key: self._find_first(job) for job in self.mains.values()}
        return {key: pid for key, pid in firsts.items() if pid}

    def _find_first(self, job: SupervisedJob) -> int:
        return job.pid if job.report is None else find_first_contained(self.members(job))

    def _belongs(self, pid: int, job: SupervisedJob) -> bool:
        """Return whether an orphan is this job's: by its session, its mark, or because no other can have made it."""
        leader = read_session(pid)
        for other in self.by_key.values():
            if other.pid == leader or pid in other.asked:
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
        """Signal a job's process group at once, then its processes that have left the group.

        A runtime's client is only stopped and continued: it would hand the signal to its container once more.
        """
        stops = number not in (STOP, CONT)
        spared = job.pid if job.apart and stops else 0
        known = self.members(job)
        if stops:
            job.asked.update(known)
            if job.status is None and read_proc(f"/proc/{job.pid}/comm").strip() in _SHELLS:
                job.children = set(list_children(job.pid)) or None
        if job.status is None and not spared:
            send_group(job.pid, number)
        for pid in dict.fromkeys(known + self.members(job)):
            if pid != spared and (spared or job.status is not None or read_group(pid) != job.pid):
                send_signal(pid, number)

    def begin_linger(self, job: SupervisedJob, now: float) -> None:
        """Let processes that work, or write to the log, have the job's grace, as its first one has ended.

        Those of a job that is asked to stop may save a checkpoint though its shell has ended. They may wait meanwhile,
        until the agent has the job killed.
        """
        job.linger_until = now + job.grace
        self.lingering[job.key] = job

    def linger(self, now: float, *, reaped: bool) -> None:
        """Begin to hunt the jobs of which nothing is left but processes that are idle, or whose time is over.

        `reaped`: a process has ended, which may have been the last of one.
        """
        for job in list(self.lingering.values()):
            early = now < job.linger_at
            if early and not (reaped or job.hunted):
                continue
            left = self.members(job)
            waits = job.held or early or job.touched or _is_busy(job, left, now)
            if left and waits and not job.hunted:
                continue
            del self.lingering[job.key]
            job.lingered, job.cut = len(left), job.cut and bool(left)
            self.begin_hunt(job, now)

    def note_child_exit(self, pid: int) -> None:
        """Note that a process that was not the first one of a job ended with an exit code."""
        for job in self.by_key.values():
            if job.children:
                job.children.discard(pid)

    def begin_hunt(self, job: SupervisedJob, now: float) -> None:
        """Have all processes of a job killed by `hunt`, again and again."""
        job.hunted = job.hunted or now
        self.hunted[job.key] = job

    def hunt(self, now: float) -> Iterator[tuple[SupervisedJob, int]]:
        """Kill all processes of the jobs that are to die; yield those that are over, with how many processes remain."""
        for job in list(self.hunted.values()):
            if job.status is None:
                send_group(job.pid, KILL)
            left = self.members(job)
            for pid in left:
                send_signal(pid, KILL)
            if job.status is not None and (not left or now - job.hunted > _PATIENCE_SECONDS):
                self.hopeless.update(left)
                yield job, len(left)

    def forget(self, job: SupervisedJob) -> None:
        """Forget a job whose end is reported."""
        self.hunted.pop(job.key, None)
        del self.by_key[job.key]

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


def _is_busy(job: SupervisedJob, left: list[int], now: float) -> bool:
    """Return whether these processes worked or wrote since they were last seen, and still have time."""
    cpu = sum(map(read_cpu_seconds, left))
    try:
        size = os.lstat(job.log).st_size
    except OSError:
        size = 0  # the job removed it
    first = job.log_seen < 0
    wrote = size > job.log_seen and not first
    job.cut = wrote or cpu - job.cpu_seen > _WORK_SECONDS or any(map(is_working, left))
    busy = job.cut or first
    job.cpu_seen, job.log_seen = cpu, size
    job.linger_at = now + LINGER
    return busy and now < job.linger_until
