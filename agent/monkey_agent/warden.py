# ruff: noqa: PTH100, PTH120
# Paths are plain strings here: the warden starts without pathlib.
"""The warden: launches all jobs of one agent, and is their parent. Jobs do not outlive it, nor it the agent.

When the socket to the agent closes, however the agent ended, every descendant is killed; so it is when the guard dies,
which is our parent and does the same for us. When the deadline that the
agent keeps moving (in the shared register) passes, every descendant is frozen until the agent renews it. When a job's
first process ends, what it left behind is killed before the end is reported.

Started as `python -I -S warden.py SOCKET REGISTER CLOCK STATE`. One thread, no dependency, as few imports as can be.
Messages are marshalled tuples behind their length: both ends are the same Python.
"""

from __future__ import annotations

import marshal
import os
import select
import signal
import sys
import time

if __name__ == "__main__":
    # Last, so that nothing that lies beside us can stand before a module of Python's.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from monkey_agent.guard import ENDINGS, kill_all, stand_guard
from monkey_agent.launch import Launch
from monkey_agent.processes import KILL, MARK, adopt_orphans, send, send_group
from monkey_agent.register import GUARD, WARDEN, Register
from monkey_agent.wards import Job, Wards

#: Milliseconds between looks at the clock while jobs run: a poll does not count the machine's sleep, the deadline does.
LOOK = 1000
#: Milliseconds between kills of what does not want to go.
HUNT = 5
#: Seconds after which the end of a job is reported though something of it cannot be killed (a dead network disk).
PATIENCE = 5.0


class Warden:
    """The loop, and everything it may be told (`do_…`)."""

    def __init__(self, socket: int, guard: int, register: Register, clock: int, state: str) -> None:
        self.socket, self.guard, self.register, self.clock, self.state = socket, guard, register, clock, state
        self.wards, self.launch = Wards(state), Launch()
        self.hunted: dict[int, Job] = {}
        #: Environments by number. As bytes: they are handed to a new process many times over.
        self.bases: dict[int, dict[bytes, bytes]] = {}
        self.late = self.blocked = False
        self.inbox, self.outbox = b"", b""
        self.wake = _wake_on_signals()
        self.poller = select.poll()
        self.poller.register(self.wake, select.POLLIN)
        self.poller.register(socket, select.POLLIN)
        if guard >= 0:
            self.poller.register(guard, select.POLLIN)

    def now(self) -> float:
        return time.clock_gettime(self.clock)

    def run(self) -> None:
        """Serve until the agent is gone; then, or if this fails, kill everything."""
        try:
            while self.turn():
                pass
        finally:
            for pid in self.wards.mains:
                send_group(pid, KILL)
            kill_all()

    def turn(self) -> bool:
        """Wait for something to happen, and see to it. False: the agent is gone, or the guard."""
        alive = True
        for fd, _ in self.poller.poll(self.timeout()):
            if fd == self.wake:
                os.read(fd, 4096)
            elif fd == self.guard:
                return False
            else:
                alive = self.receive()
        self.reap()
        if self.wards.jobs:
            self.check_deadline()
        if self.hunted:
            self.hunt()
        return alive and self.flush()

    def timeout(self) -> float | None:
        if self.hunted:
            return HUNT
        if not self.wards.jobs or self.late:
            return None
        return max(0.0, min(LOOK, (self.register.deadline - self.now()) * 1000 + 1))

    # -- the agent ----------------------------------------------------------------------------------------------------

    def receive(self) -> bool:
        try:
            data = os.read(self.socket, 1 << 16)
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        if not data:
            return False
        self.inbox += data
        while len(self.inbox) >= 4 and len(self.inbox) >= (end := 4 + int.from_bytes(self.inbox[:4], "little")):
            name, *rest = marshal.loads(self.inbox[4:end])
            self.inbox = self.inbox[end:]
            getattr(self, f"do_{name}")(*rest)
        return True

    def tell(self, kind: str, *rest: str | float | None) -> None:
        data = marshal.dumps((kind, *rest))
        self.outbox += len(data).to_bytes(4, "little") + data

    def flush(self) -> bool:
        """Write what is to be told, as far as the agent reads: one that hangs must not keep us from freezing."""
        if not self.outbox:
            return True
        try:
            self.outbox = self.outbox[os.write(self.socket, self.outbox) :]
        except BlockingIOError:
            pass
        except ConnectionError:
            return False
        if self.blocked != bool(self.outbox):
            self.blocked = bool(self.outbox)
            self.poller.modify(self.socket, select.POLLIN | (select.POLLOUT if self.blocked else 0))
        return True

    def do_base(self, number: int, env: dict[str, str]) -> None:
        """Keep an environment that many jobs share."""
        self.bases[number] = _encoded(env)

    def do_spawn(self, key: int, argv: list[str], base: int, env: dict[str, str], cwd: str, log: str) -> None:
        """Start a job, unless the deadline has passed."""
        before = self.now()
        if self.late or before >= self.register.deadline:
            self.tell("refused", key)
            return
        try:
            marked = _encoded({**env, MARK: f"{self.state}:{key}"})
            pid = self.launch(argv, {**self.bases[base], **marked}, cwd, log)
        except (OSError, ValueError) as exc:  # ValueError: a NUL in a word
            self.tell("failed", key, getattr(exc, "errno", None), getattr(exc, "filename", None) or str(exc))
            return
        entry = self.register.enter(pid, before, self.now())
        self.wards.jobs[key] = self.wards.mains[pid] = Job(key, pid, before, entry)

    def do_signal(self, key: int, number: int) -> None:
        """Signal everything of a job."""
        job = self.wards.jobs.get(key)
        if job:
            self.wards.signal(job, number)

    def do_active(self, key: int) -> None:
        """Tell how long a job ran so far. One that has ended told that with its end."""
        job = self.wards.jobs.get(key)
        if job:
            self.tell("active", key, job.ran())

    def do_kill(self, key: int) -> None:
        """Kill everything of a job, and see that it goes."""
        job = self.wards.jobs.get(key)
        if job:
            self.begin_hunt(job)

    def do_freeze(self, key: int) -> None:
        """Freeze a job until `thaw`."""
        job = self.wards.jobs.get(key)
        if job:
            job.held = True
            self.wards.freeze(job)

    def do_thaw(self, key: int) -> None:
        """Let a job go on, unless the deadline has passed."""
        job = self.wards.jobs.get(key)
        if job:
            job.held = False
            self.check_deadline()
            if not self.late:
                self.wards.go_on(job)

    def do_renew(self) -> None:
        """The agent moved the deadline after it had passed: let everything go on that it did not freeze itself.

        It comes by the socket, so that it cannot overtake a freeze that was sent before it.
        """
        now = self.now()
        if self.late and now < self.register.deadline:
            self.late = False
            for job in self.wards.jobs.values():
                if not job.held:
                    self.wards.go_on(job)
            self.wards.go_on_unknown()

    def check_deadline(self) -> None:
        now = self.now()  # before the deadline is read: whoever renews looks at the clock after it wrote
        if not self.late and now >= self.register.deadline:
            self.late = True
            self.wards.freeze_all()

    # -- ends ---------------------------------------------------------------------------------------------------------

    def reap(self) -> None:
        """Take in all who died; a job's end is reported when nothing of it is left."""
        ended = []
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not pid:
                break
            self.wards.hopeless.discard(pid)
            job = self.wards.mains.pop(pid, None)
            if job:
                send_group(pid, KILL)
                job.halt()
                job.status, job.peak = os.waitstatus_to_exitcode(status), usage.ru_maxrss
                ended.append(job)
        if ended:
            strays = self.wards.strays()
            for job in ended:
                if strays:
                    self.begin_hunt(job)
                else:
                    self.report(job, 0)

    def begin_hunt(self, job: Job) -> None:
        job.hunted = job.hunted or self.now()
        self.hunted[job.key] = job

    def hunt(self) -> None:
        """Kill all of the jobs that are to die, again and again, until nothing of them is left."""
        for job in list(self.hunted.values()):
            if job.status is None:
                send_group(job.pid, KILL)
            left = self.wards.members(job)
            for pid in left:
                send(pid, KILL)
            if job.status is not None and (not left or self.now() - job.hunted > PATIENCE):
                self.wards.hopeless.update(left)
                self.report(job, len(left))

    def report(self, job: Job, left: int) -> None:
        self.hunted.pop(job.key, None)
        del self.wards.jobs[job.key]
        self.register.leave(job.entry)
        self.tell("ended", job.key, job.status, job.active, job.peak, left)


def _encoded(env: dict[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in env.items()}


def _wake_on_signals() -> int:
    """Return a descriptor that can be read when a child died. Signals that end others only wake us: we end last.

    They are handled, not ignored: jobs would inherit that.
    """
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, *ENDINGS):
        signal.signal(number, lambda *_: None)
    return reading


def main(socket: str, register: str, clock: str, state: str) -> None:
    """Serve the agent at the other end of the descriptor `socket`."""
    guard = stand_guard(int(socket))
    os.set_blocking(int(socket), False)
    os.set_inheritable(int(socket), False)
    warden = Warden(int(socket), guard, Register(register), int(clock), state)
    now = warden.now()
    warden.register.enter(os.getpid(), now - 10, now, WARDEN)
    if guard >= 0:
        warden.register.enter(os.getppid(), now - 10, now, GUARD)
    warden.tell("ready", adopt_orphans())
    warden.flush()
    warden.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
