# ruff: noqa: PTH110, PTH208
# Paths are plain strings here: this starts without pathlib.
"""The leash: the parent of one run of Pulumi, so that nothing of it outlives the process that wanted it.

When the pipe from our process closes, however that ended, or the deadline passes that it keeps moving, Pulumi is killed
with its plugins and all that they started; so is, when Pulumi ends, what it left behind. Pulumi's own plugins do not
look after that: a dynamic provider waits for ever for an engine that is gone.

Started as `python -I -S engine_supervisor.py PIPE CLOCK PROGRAM ARGUMENTS…`; the pipe carries lines: a deadline on that
clock, or "interrupt". Stdlib only, one thread.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress

#: Milliseconds between looks at the clock: a poll does not count the machine's sleep, the deadline does.
_POLL_MILLISECONDS = 500
#: Seconds after which we give up on what does not die though killed (a dead network disk).
_PATIENCE_SECONDS = 10.0
HAS_PROC = os.path.exists("/proc/self/stat")
#: Exit code where the program could not be started, as shells have it.
NOT_STARTED = 127


def run_engine_supervisor(pipe: int, clock: int, argv: list[str]) -> int:
    """Run `argv` to its end, or to ours; returns its exit code."""
    os.set_inheritable(pipe, False)
    os.set_blocking(pipe, False)
    _adopt_orphans()
    wake = _wake_on_signals()
    try:
        pid = os.posix_spawn(argv[0], argv, os.environ, setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    except OSError as exc:
        sys.stderr.write(f"{argv[0]}: {exc.strerror}\n")
        return NOT_STARTED
    code = _watch(pid, pipe, wake, clock)
    _kill_all(pid, code is None)
    return 128 + signal.SIGKILL if code is None else code


def _watch(pid: int, pipe: int, wake: int, clock: int) -> int | None:
    """Return the exit code; None where the pipe closed or the deadline passed before."""
    deadline, poller = float("inf"), select.poll()
    poller.register(pipe, select.POLLIN)
    poller.register(wake, select.POLLIN)
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if time.clock_gettime(clock) >= deadline:
            return None
        for fd, _ in poller.poll(_POLL_MILLISECONDS):
            said = os.read(fd, 4096)
            if fd == wake:
                continue
            if not said:
                return None
            for line in said.split():
                if line == b"interrupt":
                    os.kill(pid, signal.SIGINT)
                else:
                    deadline = float(line)


def _wake_on_signals() -> int:
    """Return a descriptor that can be read when a child ended. What would end us only wakes us: we end last."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return reading


def _adopt_orphans() -> None:
    """Become the parent of all descendants whose parent dies (Linux), so that no double fork escapes."""
    if sys.platform.startswith("linux"):
        try:
            import ctypes

            ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
        except (ImportError, OSError, AttributeError):
            return


def _kill_all(pid: int, running: bool) -> None:
    """Kill every descendant, and those that they fork meanwhile, until none is left or none can be killed."""
    known = [pid] if running else []
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        found = {*known, *_below(os.getpid())}
        for each in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
        known = []
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


def _below(root: int) -> list[int]:
    parents = _parents()
    found, level = list[int](), [root]
    while level:
        level = [pid for pid, parent in parents.items() if parent in level]
        found += level
    return found


def _parents() -> dict[int, int]:
    """Return every process and its parent."""
    if not HAS_PROC:
        import subprocess

        lines = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True).stdout.splitlines()
        return {int(pid): int(parent) for pid, parent in map(str.split, lines)}
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    found[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue
    return found


if __name__ == "__main__":
    os._exit(run_engine_supervisor(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
