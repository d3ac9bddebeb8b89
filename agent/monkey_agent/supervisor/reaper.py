"""The guard: outlives the supervisor, to end what it leaves. It waits, and does nothing else.

A process whose parent dies goes to the nearest ancestor that asked for such (Linux: PR_SET_CHILD_SUBREAPER): from jobs
to the supervisor, and from a killed supervisor to the guard, whatever its session and group. Where a system has no
such ancestors (macOS), there is no guard.
"""

from __future__ import annotations

import os
import signal

from monkey.processes.descendants import ENDINGS, kill_all
from monkey.processes.process_tree import adopt_orphans


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
