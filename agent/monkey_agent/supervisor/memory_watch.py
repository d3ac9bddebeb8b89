"""The memory that jobs asked for, held: by the kernel where we have control groups, else by looks at each job.

A look reads what the job's processes hold. The less is left to a job, the sooner comes the next look, but a job may
take more for a moment. The kernel is exact.
"""

from __future__ import annotations

import time
from contextlib import contextmanager

from monkey.processes.container_usage import find_first_contained, list_contained
from monkey.processes.memory_groups import MemoryGroup, MemoryGroups, find_container_group, find_memory_groups
from monkey.processes.memory_use import measure_own_memory, sum_own_memory
from monkey.processes.process_tree import HAS_PROC, list_descendants
from monkey_agent.supervisor.supervised_jobs import SupervisedJob, SupervisedJobs

TYPE_CHECKING = False
if TYPE_CHECKING:  # the supervisor starts without either
    from collections.abc import Callable, Iterator

#: Bytes that a job takes in a second at most, for when to look again; and the least and most seconds between looks.
_PACE, _LEAST_SECONDS, _MOST_SECONDS = 4 << 30, 0.05, 1.0
#: Seconds between tries to remove a group, and their number: a process that cannot be killed may be in it.
TIDY_SECONDS, _TRIES = 0.01, 50
#: Exact counts of shared memory take this part of the time at most.
_EXACT = 1 / 20
#: How the memory of jobs is held: by the kernel, by looks, or not at all; and what the agent's log says of it.
KERNEL, LOOKS, NOT_HELD = "kernel", "looks", ""
MEMORY_TOLD = {
    KERNEL: "resources.memory: the kernel ends jobs that take more (a control group for each)",
    LOOKS: "resources.memory: no control group is ours here: jobs are looked at, and end a moment after they took more",
    NOT_HELD: "resources.memory: nothing here ends jobs that take more",
}


class MemoryWatch:
    """The limits of all jobs of a supervisor."""

    def __init__(self, state: str, agent: int, tell: Callable[[str, str], None]) -> None:
        """Watch for the agent with the process `agent` and the state directory `state`.

        `tell` receives "memory" and how memory is held, at the first job that has a limit.
        """
        self._state, self._agent, self._tell = state, agent, tell
        self._groups: MemoryGroups | None = None
        #: Groups of jobs that are over, each with how often it could not be removed.
        self._stale: list[tuple[MemoryGroup, int]] = []
        self._how: str | None = None
        #: Jobs that are limited.
        self._jobs: list[SupervisedJob] = []

    @contextmanager
    def confine(self, key: int, limit: int) -> Iterator[MemoryGroup | None]:
        """Have what is started meanwhile begin in a control group of its own, if we have some and there is a limit."""
        group = self._enter(key) if limit else None
        if group is None:
            yield None
            return
        try:
            yield group
        except BaseException:
            self._leave()
            group.remove()
            raise
        self._leave()

    def _enter(self, key: int) -> MemoryGroup | None:
        if self._how is None:
            self._groups = find_memory_groups(self._state, [self._agent, *list_descendants([self._agent])])
            self._how = KERNEL if self._groups else LOOKS if HAS_PROC else NOT_HELD
            self._tell("memory", self._how)
        if self._groups is None:
            return None
        group = None
        try:
            group = self._groups.make(key)
            group.enter()
        except OSError:  # of this one job, which is looked at
            if group:
                group.remove()
            return None
        return group

    def _leave(self) -> None:
        try:
            if self._groups is not None:
                self._groups.leave()
        except OSError:  # then no job gets a limit by the kernel: it would be ours, too
            self._groups = None

    def begin(self, job: SupervisedJob, limit: int, group: MemoryGroup | None) -> None:
        """Hold a job that was just started to `limit` bytes, 0 for any number."""
        if not limit or not HAS_PROC:
            return
        job.limit, job.group = limit, group if self._groups else None
        self._jobs.append(job)
        try:
            if job.group and not job.group.limit(limit):
                job.over = job.group.peak()
        except OSError:
            job.group = None
            self._drop(group)

    def end(self, job: SupervisedJob) -> None:
        """Forget a job whose processes are gone."""
        if job.limit:
            self._jobs.remove(job)
            self._drop(job.group)

    def _drop(self, group: MemoryGroup | None) -> None:
        if group and not group.remove():
            self._stale.append((group, 1))

    def tidy(self) -> None:
        """Remove the groups of jobs that are over: the kernel lets go of a process a moment after its end."""
        left = [(group, tries + 1) for group, tries in self._stale if not group.remove()]
        self._stale = [(group, tries) for group, tries in left if tries < _TRIES]

    def close(self) -> None:
        """Remove all groups, as all processes are gone."""
        for job in self._jobs:
            self._drop(job.group)
        while self._stale:
            self.tidy()
            time.sleep(TIDY_SECONDS)

    @property
    def untidy(self) -> bool:
        """Return whether `tidy` is to be called in `TIDY_SECONDS`."""
        return bool(self._stale)

    @property
    def seconds(self) -> float:
        """Return the seconds until the next look."""
        now = time.monotonic()
        return max(0.0, min((job.look_at - now for job in self._jobs), default=_MOST_SECONDS))

    def note_kill(self, job: SupervisedJob) -> None:
        """Note whether the kernel ended a process of the job, as that had taken too much."""
        if job.group and not job.over and job.group.has_killed():
            job.over = max(job.group.peak(), 1)

    def find_excess(self, jobs: SupervisedJobs) -> list[SupervisedJob]:
        """Look at the jobs whose time has come; return those that took too much, with `over` set."""
        now, found = time.monotonic(), []
        for job in self._jobs:
            if job.hunted or job.look_at > now:
                continue
            job.look_at = now + _MOST_SECONDS
            if job.group:
                self.note_kill(job)
            elif job.report is None:
                self._look(job, jobs.members(job))
            else:
                self._look_inside(job, jobs.members(job))
            if job.over:
                found.append(job)
        return found

    def _look_inside(self, job: SupervisedJob, pids: list[int]) -> None:
        """Look at a container, whose limit the kernel keeps where its runtime made a control group for it."""
        first = find_first_contained(pids)
        group = find_container_group(first, job.pid) if first else None
        if group and group.has_killed():
            job.over = max(group.peak(), 1)
        elif first and not group:
            self._look(job, list_contained(pids))

    def _look(self, job: SupervisedJob, pids: list[int]) -> None:
        began = time.monotonic()
        held = sum_own_memory(pids)
        if held > job.limit and len(pids) > 1:
            if began < job.exact_at:  # an exact count is dear
                job.look_at = job.exact_at
                return
            held = measure_own_memory(pids)
            now = time.monotonic()
            job.exact_at = now + (now - began) / _EXACT
        if held > job.limit:
            job.over = held
        left = (job.limit - held) / _PACE
        job.look_at = began + min(max(left, _LEAST_SECONDS), _MOST_SECONDS)
