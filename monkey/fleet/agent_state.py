"""Whether an agent lives in its state directory on this machine, its default name, and what it exits with.

Both sides use this file: the agent, which holds the lock, and the fleet that starts it and asks whether it lives.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

#: What file systems without locks answer: Lustre that is mounted without them, NFS 3 without their server.
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
#: Exit codes of an agent, for systemd and others that start agents. It found no work; it was asked to leave, and work
#: may be left; it cannot work here, and another try would end the same. After 1 another try may help.
NO_WORK, TAKEN_BACK, UNFIT = 0, 75, 78


def make_host_name() -> str:
    """Return the name of this machine as a name of an agent: letters, digits, '-', '_' and '.' alone."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in os.uname().nodename)
    return name.strip(".-") or "localhost"


def is_agent_alive(directory: Path) -> bool:
    """Say whether an agent holds the lock of this state directory (asking takes no lock that an agent could meet)."""
    import fcntl

    try:
        lock = os.open(directory / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as exc:
        if exc.errno not in NO_LOCKS:
            raise
    finally:
        os.close(lock)
    return False


def read_agent_pid(directory: Path) -> int | None:
    """Return the process that holds (or last held) the lock, as it wrote into it; None where it did not."""
    try:
        return int((directory / "lock").read_bytes().split()[0])
    except (OSError, ValueError, IndexError):
        return None
