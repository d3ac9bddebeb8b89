"""The agent's state directory on this machine, which one agent at a time holds."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from pathlib import Path

from monkey.errors import FleetError, MachineUnfit
from monkey.removal import remove_file

#: Seconds for which another process may hold the lock only to ask whether an agent lives.
GLANCE = 1.0
#: The file that says that the last agent of a directory left in peace; the next agent removes it.
_GOODBYE_FILE = "left-in-peace"


#: What passes by itself, or once somebody frees some space.
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def explain_directory_failure(directory: Path, verb: str, exc: OSError) -> FleetError:
    """Return the error for an agent's directory that cannot be used; `verb`: "used", "written"."""
    kind = FleetError if exc.errno in _PASSING else MachineUnfit
    told = f"the agent's directory {directory} cannot be {verb}: {exc.strerror}"
    return kind(told, hint="--state or XDG_STATE_HOME names another place for it")


class StateDirectory:
    """A locked state directory. The lock ends with the process, however that ends."""

    def __init__(self, directory: Path) -> None:
        """Create the directory if need be, and lock it.

        Raises FleetError where an agent holds it already, or where it cannot be written.
        """
        self.directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._acquire()
            os.truncate(self._lock, 0)
            os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)
            remove_file(directory / _GOODBYE_FILE)
        except OSError as exc:
            raise explain_directory_failure(directory, "used", exc) from exc

    def _acquire(self) -> None:
        until = time.monotonic() + GLANCE
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > until:
                    break
                time.sleep(0.01)
        holder = os.pread(self._lock, 32, 0).decode(errors="replace").strip() or "?"
        os.close(self._lock)
        raise FleetError(
            f"an agent already runs here (process {holder}, {self.directory})",
            hint="one agent uses all of the machine; --name starts another one beside it",
        )

    def leave(self) -> None:
        """Record that the agent left in peace, so that nothing starts it again by itself."""
        with contextlib.suppress(OSError):
            (self.directory / _GOODBYE_FILE).touch()

    def close(self) -> None:
        """Unlock the directory."""
        os.close(self._lock)
