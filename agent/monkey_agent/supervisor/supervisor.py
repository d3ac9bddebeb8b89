# ruff: noqa: PTH100, PTH120
# Paths are plain strings here: the supervisor starts without pathlib.
"""The supervisor launches all jobs of one agent, and is their parent. Jobs do not outlive it, nor it the agent.

It kills all descendants when the socket to the agent closes, or the guard dies. The guard, its parent, does the same
for it. It freezes them when the deadline in the shared register passes, until the agent renews it. When a job's first
process ends, it gives the rest of the job a while, kills it, then records and reports the end. The job's follower
begins at once.

It runs as `python -I -S supervisor.py ROOT SOCKET REGISTER CLOCK STATE`, with `monkey` in ROOT, in one thread.
"""

from __future__ import annotations

import os
import select
import sys
import time

if __name__ == "__main__":
    # Last, so that nothing that lies beside us can stand before a module of Python's.
    sys.path += [os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), sys.argv.pop(1)]

from monkey.processes.container_usage import USAGE_REPORT
from monkey.processes.descendants import kill_all, wake_on_signals
from monkey.processes.process_tree import KILL, MARK, adopt_orphans, send_group
from monkey_agent.supervisor.memory_watch import TIDY_SECONDS, MemoryWatch
from monkey_agent.supervisor.messages import Pipe, find_new_key
from monkey_agent.supervisor.pending import PendingJob, PendingJobs
from monkey_agent.supervisor.reaper import stand_guard
from monkey_agent.supervisor.shared_state import GUARD, OWN, SIGNALLED, SUPERVISOR, SharedState
from monkey_agent.supervisor.spawn import LIFELINE, ProgramStarter, encode_environment
from monkey_agent.supervisor.supervised_jobs import LINGER, SupervisedJob, SupervisedJobs

TYPE_CHECKING = False
if TYPE_CHECKING:  # the supervisor starts without typing
    from typing import Any

#: Milliseconds between looks at the clock while jobs run: a poll does not count the machine's sleep, the deadline does.
_POLL_MILLISECONDS = 1000
#: Milliseconds between kills of processes that do not end.
HUNT = 5


class SupervisorLoop:
    """The loop, and a method for each message (`do_…`)."""

    def __init__(self, socket: int, guard: int, register: SharedState, clock: int, state: str, agent: int) -> None:
        self.socket, self.guard, self.register, self.clock, self.state = socket, guard, register, clock, state
        self.jobs, self.launch, self.turns = SupervisedJobs(state), ProgramStarter(), PendingJobs()
        self.late = self.blocked = False
        self.pipe = Pipe(socket)
        self.memory = MemoryWatch(state, agent, self.pipe.tell)
        self.wake = wake_on_signals()
        self.poller = select.poll()
        self.poller.register(self.wake, select.POLLIN)
        self.poller.register(socket, select.POLLIN)
        if guard >= 0:
            self.poller.register(guard, select.POLLIN)

    def now(self) -> float:
        return time.clock_gettime(self.clock)

    def run(self) -> None:
        """Serve until the agent is gone; then, or after an error, kill all descendants."""
        try:
            while self.turn():
                pass
        finally:
            for pid in self.jobs.mains:
                send_group(pid, KILL)
            kill_all()
            self.memory.close()

    def turn(self) -> bool:
        """Wait for an event, and handle it; return False if the agent or the guard is gone."""
        alive = True
        events = self.poller.poll(self.timeout())
        self.jobs.pass_over_stop(_POLL_MILLISECONDS / 1000)
        for fd, _ in events:
            if fd == self.wake:
                os.read(fd, 4096)
            elif fd == self.guard:
                return False
            else:
                alive = self.receive()
        reaped = self.reap()
        if self.jobs.by_key:
            self.check_deadline()
            for job in self.memory.find_excess(self.jobs):
                self.jobs.begin_hunt(job, self.now())
        if self.jobs.lingering and not self.late:
            self.jobs.linger(self.now(), reaped=reaped)
        for job, left in self.jobs.hunt(self.now()):
            self.report(job, left)
        self.memory.tidy()
        return alive and self.flush()

    def timeout(self) -> float | None:
        if self.jobs.hunted:
            return HUNT
        if self.jobs.lingering:
            return LINGER * 1000
        if self.memory.untidy:
            return TIDY_SECONDS * 1000
        if not self.jobs.by_key or self.late:
            return None
        seconds = min(self.memory.seconds, self.register.deadline - self.now())
        return max(0.0, min(_POLL_MILLISECONDS, seconds * 1000 + 1))

    def receive(self) -> bool:
        messages = self.pipe.receive()
        for message in messages or ():
            try:
                name, *rest = message
                getattr(self, f"do_{name}")(*rest)
            except Exception as exc:  # of one job; we are the parent of others
                sys.excepthook(*sys.exc_info())
                if (key := find_new_key(message)) and key not in self.jobs.by_key and not self.turns.find(key):
                    self.pipe.tell("failed", key, None, repr(exc))
        return messages is not None

    def flush(self) -> bool:
        """Send waiting messages to the agent, as far as it reads; return whether it is alive."""
        alive = self.pipe.flush()
        if self.blocked != self.pipe.blocked:
            self.blocked = self.pipe.blocked
            self.poller.modify(self.socket, select.POLLIN | (select.POLLOUT if self.blocked else 0))
        return alive

    def do_base(self, number: int, env: dict[str, str]) -> None:
        """Keep an environment that many jobs share."""
        self.launch.bases[number] = encode_environment(env)

    def do_spawn(self, key: int, after: int, *how: Any) -> None:
        """Start a job, unless the deadline has passed; a job that follows another (`after`) waits for its turn."""
        if type(key) is not int or type(after) is not int or key in self.jobs.by_key or self.turns.find(key):
            raise ValueError(f"no job can have the number {key!r}, after {after!r}")
        if after:
            self.turns.add(PendingJob(key, after, how))
        else:
            self.start(key, *how)

    def do_begin(self, key: int) -> None:
        """Start a job if it still waits for its turn."""
        waiting = self.turns.find(key)
        if waiting:
            waiting.called = True
            self.start_if_free(waiting)

    def start_if_free(self, waiting: PendingJob) -> None:
        """Start a job whose turn it is, unless it is frozen: then `do_thaw` starts it."""
        if not waiting.held:
            self.turns.remove(waiting)
            self.start(waiting.key, *waiting.how)

    def start(
        self,
        key: int,
        name: str,
        argv: list[str],
        base: int,
        env: dict[str, str],
        cwd: str,
        log: str,
        limit: int,
        grace: float,
    ) -> None:
        """Start a job that may hold `limit` bytes of memory, 0 for any number, unless the deadline has passed.

        `grace`: seconds that its processes may work on when the first one has ended.
        """
        before = self.now()
        if self.late or before >= self.register.deadline:
            self.pipe.tell("refused", key)
            return
        try:
            name.encode()  # as the register will, when the job has ended
            # The limit of a container is its runtime's: the client is none of the job.
            with self.memory.confine(key, 0 if USAGE_REPORT in env else limit) as group:
                pid = self.launch(argv, base, {**env, MARK: f"{self.state}:{key}"}, cwd, log)
        except Exception as exc:  # of the machine, or what is no word: of another type, or with a NUL in it
            self.pipe.tell("failed", key, getattr(exc, "errno", None), getattr(exc, "filename", None) or repr(exc))
            return
        entry = self.register.enter(pid, before, self.now())
        job = SupervisedJob(key, name, pid, before, entry, log, grace)
        job.apart, job.report = LIFELINE in env, env.get(USAGE_REPORT)
        self.jobs.by_key[key] = self.jobs.mains[pid] = job
        self.memory.begin(job, limit, group)

    def do_signal(self, key: int, number: int) -> None:
        """Signal all processes of a job."""
        job = self.jobs.by_key.get(key)
        if job:
            job.touched = True
            self.jobs.signal(job, number)
        self.drop(key)

    def drop(self, key: int) -> None:
        """Give up a job that waits for its turn."""
        waiting = self.turns.find(key)
        if waiting:
            self.turns.remove(waiting)
            self.pipe.tell("refused", key)

    def do_active(self, key: int) -> None:
        """Report the seconds that a job ran so far; for an ended job, they came with the report of its end."""
        job = self.jobs.by_key.get(key)
        if job or self.turns.find(key):
            self.pipe.tell("active", key, job.ran() if job else 0.0)

    def do_mains(self) -> None:
        """Report the first processes of all jobs."""
        self.pipe.tell("mains", self.jobs.find_firsts())

    def do_kill(self, key: int) -> None:
        """Kill all processes of a job, again and again until they are gone."""
        job = self.jobs.by_key.get(key)
        if job:
            job.touched = True
            self.jobs.begin_hunt(job, self.now())
        self.drop(key)

    def do_freeze(self, key: int) -> None:
        """Freeze a job until `thaw`."""
        job = self.jobs.by_key.get(key) or self.turns.find(key)
        if job:
            job.held = True
        if isinstance(job, SupervisedJob):
            self.jobs.freeze(job)

    def do_thaw(self, key: int) -> None:
        """Let a job continue, unless the deadline has passed."""
        job = self.jobs.by_key.get(key)
        if job:
            job.held = False
            self.check_deadline()
            if not self.late:
                self.jobs.go_on(job)
        waiting = self.turns.find(key)
        if waiting:
            waiting.held = False
        if waiting and waiting.called:
            self.start_if_free(waiting)

    def do_renew(self) -> None:
        """Let all jobs continue that the agent did not freeze itself, as it moved a deadline that had passed.

        The message comes by the socket, so that it cannot overtake a freeze that was sent before it.
        """
        now = self.now()
        if self.late and now < self.register.deadline:
            self.late = False
            for job in self.jobs.by_key.values():
                if not job.held:
                    self.jobs.go_on(job)
            self.jobs.go_on_unknown()

    def check_deadline(self) -> None:
        now = self.now()  # before the deadline is read: whoever renews looks at the clock after it wrote
        if not self.late and now >= self.register.deadline:
            self.late = True
            self.jobs.freeze_all()

    def reap(self) -> bool:
        """Reap all dead children, and return whether there were any.

        A job's end is reported when none of its processes is left.
        """
        ended, reaped = [], False
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not pid:
                break
            reaped = True
            self.jobs.hopeless.discard(pid)
            job = self.jobs.mains.pop(pid, None)
            if job:
                job.exited(status, usage)
                self.memory.note_kill(job)
                ended.append(job)
            elif os.WIFEXITED(status) and os.WEXITSTATUS(status) < SIGNALLED:
                self.jobs.note_child_exit(pid)
        if ended:
            orphans = self.jobs.orphans()
            for job in ended:
                ends = self.late or job.held or job.hunted or job.report is not None
                if orphans and job.grace and not ends:
                    self.jobs.begin_linger(job, self.now())
                    continue
                send_group(job.pid, KILL)
                if orphans or job.apart:
                    self.jobs.begin_hunt(job, self.now())
                else:
                    self.report(job, 0)
        return reaped

    def report(self, job: SupervisedJob, left: int) -> None:
        self.jobs.forget(job)
        assert job.status is not None
        at = self.register.note_exit(job.name, job.worth, job.status, job.active, job.over >> 10 or job.peak)
        self.register.leave(job.entry)
        self.memory.end(job)
        told = job.status, job.active, job.peak, left, at, job.cpu, job.over, job.lingered, job.cut
        self.pipe.tell("ended", job.key, *told, job.children == set())
        follower = self.turns.follower(job.key)
        if job.worth == OWN and follower and not (follower.held or self.late or self.now() >= self.register.deadline):
            self.pipe.tell("begun", follower.key)
            self.start_if_free(follower)


def run_supervisor(socket: str, register: str, clock: str, state: str) -> None:
    """Serve the agent at the other end of the descriptor `socket`."""
    agent, guard = os.getppid(), stand_guard(int(socket))
    os.set_blocking(int(socket), False)
    os.set_inheritable(int(socket), False)
    supervisor = SupervisorLoop(int(socket), guard, SharedState(register), int(clock), state, agent)
    now = supervisor.now()
    supervisor.register.enter(os.getpid(), now - 10, now, SUPERVISOR)
    if guard >= 0:
        supervisor.register.enter(os.getppid(), now - 10, now, GUARD)
    supervisor.pipe.tell("ready", adopt_orphans())
    supervisor.flush()
    supervisor.run()


if __name__ == "__main__":
    run_supervisor(*sys.argv[1:])
