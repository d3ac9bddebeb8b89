"""The guard: outlives the supervisor, to end what it leaves. It waits, and does nothing else.

A process whose parent dies goes to the nearest ancestor that asked for such (Linux: PR_SET_CHILD_SUBREAPER): from jobs
to the supervisor, and from a killed supervisor to the guard, whatever its session and group. Where a system has no
such ancestors (macOS), there is no guard.
"""

from __future__ import annotations

import os
import signal
import time

from monkey_agent.supervisor.process_tree import KILL, STOP, adopt_orphans, list_descendants, send_signal

#: Seconds after which we give up on what does not die though killed (a dead network disk).
_PATIENCE_SECONDS = 10.0
#: Signals that end others; we go when the supervisor has gone.
ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def stand_guard(socket: int) -> int:
    """Split in two: this returns in the supervisor only, with a descriptor that can be read when the guard is gone.

    The guard closes `socket`, the supervisor's. Returns -1 where there is no guard.
    """
    if not adopt_orphans():
        return -1
    for number in ENDINGS:
        signal.signal(number, signal.SIG_IGN)
    reading, writing = os.pipe()
    supervisor = os.fork()
    if not supervisor:
        os.close(writing)
        return reading
    os.close(reading)
    os.close(socket)
    os.waitpid(supervisor, 0)
    kill_all()
    os._exit(0)


def kill_all() -> None:
    """Kill every descendant, and those that they fork meanwhile, until none is left or none can be killed."""
    until, pause = time.monotonic() + _PATIENCE_SECONDS, 0.0005
    while time.monotonic() < until:
        # Stopped first: who does not run forks nobody, and tells nobody of who was killed.
        stopped: set[int] = set()
        while (new := set(list_descendants([os.getpid()])) - stopped) and time.monotonic() < until:
            for pid in new:
                send_signal(pid, STOP)
            stopped |= new
        for pid in stopped:
            send_signal(pid, KILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(pause)
        pause = min(2 * pause, 0.02)


def wake_on_signals() -> int:
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
