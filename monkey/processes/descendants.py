"""The end of all descendants of this process, for supervisors: programs that outlive what they start."""

from __future__ import annotations

import os
import signal
import time

from monkey.processes.process_tree import KILL, STOP, list_descendants, send_signal

#: Seconds after which we give up on what does not die though killed (a dead network disk).
_PATIENCE_SECONDS = 10.0
#: Signals that end others; a supervisor goes when its work is done.
ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


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
