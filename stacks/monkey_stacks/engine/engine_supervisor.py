"""The engine's supervisor: the parent of one run of Pulumi, so that no process of it outlives ours, which started it.

Our process holds a pipe, and keeps moving a deadline. When the pipe closes, or the deadline passes, the supervisor
kills Pulumi with its plugins and all that they started. When Pulumi ends, it kills the processes that are left.
Pulumi's own plugins do not do so: a dynamic provider waits for ever for an engine that is gone.

It runs as `python -I -S engine_supervisor.py ROOT PIPE CLOCK PROGRAM ARGUMENTS…`; the package `monkey` is in ROOT. The
pipe carries lines: a deadline on that clock, or "interrupt". It has one thread, and needs only the standard library.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

if __name__ == "__main__":
    # Last, so that nothing that lies there can stand before a module of Python's.
    sys.path.append(sys.argv.pop(1))

from monkey.processes.descendants import kill_all, wake_on_signals
from monkey.processes.private_process import seal_descriptors
from monkey.processes.process_tree import adopt_orphans

#: Milliseconds between looks at the clock: a poll does not count the machine's sleep, the deadline does.
_POLL_MILLISECONDS = 500
#: Exit code where the program could not be started, as of shells.
NOT_STARTED = 127


def run_engine_supervisor(pipe: int, clock: int, argv: list[str]) -> int:
    """Run `argv` until it ends, or our process or the deadline does; return its exit code."""
    os.set_inheritable(pipe, False)
    os.set_blocking(pipe, False)
    adopt_orphans()
    seal_descriptors()
    wake = wake_on_signals()
    try:
        pid = os.posix_spawn(argv[0], argv, os.environ, setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    except OSError as exc:
        sys.stderr.write(f"{argv[0]}: {exc.strerror}\n")
        return NOT_STARTED
    code = _watch(pid, pipe, wake, clock)
    kill_all()
    return 128 + signal.SIGKILL if code is None else code


def _watch(pid: int, pipe: int, wake: int, clock: int) -> int | None:
    """Wait for the process, and return its exit code; None where the pipe closed or the deadline passed before."""
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


if __name__ == "__main__":
    os._exit(run_engine_supervisor(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
