"""Guards outlive the supervisor, to kill the processes that it leaves. They wait, and do nothing else.

A process whose parent dies gets the nearest ancestor that asked for such as its parent (Linux: PR_SET_CHILD_SUBREAPER).
So processes of jobs come to the supervisor, whatever their session and group. From a killed supervisor they come to its
guard, and from a killed guard to the keeper. People end all that is called after us at once, so the keeper has another
name. The guard and its supervisor end when it does. Where a system has no such ancestors (macOS), there is neither.
"""

from __future__ import annotations

import os
import signal

from monkey.processes.descendants import ENDINGS, kill_all
from monkey.processes.private_process import seal_descriptors, seal_memory
from monkey.processes.process_tree import adopt_orphans, end_with_parent, set_title

#: What lists of processes call the keeper.
KEEPER = b"keeper-of-jobs"


def stand_guard(socket: int) -> int:
    """Fork into keeper, guard and supervisor; return only in the supervisor.

    Returns a descriptor that becomes readable when the guard is gone; -1 where there is no guard. The others close all
    descriptors up to `socket`, the supervisor's, but the other end of this one, which the guard has.
    """
    seal_memory()  # the variables of all jobs come to the supervisor
    seal_descriptors()
    if not adopt_orphans():
        return -1
    for number in ENDINGS:
        signal.signal(number, signal.SIG_IGN)
    keeper = os.getpid()
    guard = os.fork()
    if guard:
        set_title(KEEPER)
        os.closerange(3, socket + 1)
        _outlive(guard)
        os._exit(0)
    if not (end_with_parent(keeper) and adopt_orphans()):
        os._exit(1)
    reading, writing = os.pipe()
    supervisor = os.fork()
    if not supervisor:
        os.close(writing)
        return reading
    # Whatever else is open: libffi, which ctypes brings, may hold a file.
    os.closerange(3, writing)
    os.closerange(writing + 1, socket + 1)
    _outlive(supervisor)
    os._exit(0)


def _outlive(child: int) -> None:
    """Wait for the end of a child, and kill all that it leaves."""
    os.waitpid(child, 0)
    kill_all()
