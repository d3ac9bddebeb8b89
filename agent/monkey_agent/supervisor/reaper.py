"""The guard outlives the supervisor, to kill the processes that it leaves. It waits, and does nothing else.

A process whose parent dies gets the nearest ancestor that asked for such as its parent (Linux: PR_SET_CHILD_SUBREAPER).
So processes of jobs come to the supervisor, and from a killed supervisor to the guard, whatever their session and
group. Where a system has no such ancestors (macOS), there is no guard.
"""

from __future__ import annotations

import os
import signal

from monkey.processes.descendants import ENDINGS, kill_all
from monkey.processes.private_process import seal_descriptors, seal_memory
from monkey.processes.process_tree import adopt_orphans


def stand_guard(socket: int) -> int:
    """Fork into guard and supervisor; return only in the supervisor.

    Returns a descriptor that becomes readable when the guard is gone; -1 where there is no guard. The guard closes all
    descriptors up to `socket`, the supervisor's, but the other end of this one.
    """
    seal_memory()  # the variables of all jobs come to the supervisor
    seal_descriptors()
    if not adopt_orphans():
        return -1
    for number in ENDINGS:
        signal.signal(number, signal.SIG_IGN)
    reading, writing = os.pipe()
    supervisor = os.fork()
    if not supervisor:
        os.close(writing)
        return reading
    # Whatever else is open: libffi, which ctypes brings, may hold a file.
    os.closerange(3, writing)
    os.closerange(writing + 1, socket + 1)
    os.waitpid(supervisor, 0)
    kill_all()
    os._exit(0)
