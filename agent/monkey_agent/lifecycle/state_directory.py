"""The agent's state directory on this machine, which one agent at a time holds."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterable
from pathlib import Path

from monkey.atomic_write import write_atomically
from monkey.errors import FleetError, MachineUnfit
from monkey.removal import remove_file
from monkey.untrusted_files import check_below, make_private_directory

#: Seconds for which another process may hold the lock only to ask whether an agent lives.
GLANCE = 1.0
#: The file that says that the last agent of a directory left in peace; the next agent removes it.
_GOODBYE_FILE = "left-in-peace"


#: Directories below an agent's own in which files are removed, moved or written.
STATE_DIRECTORIES = ("abandoned", "attempts", "checkpoints", "left", "metrics", "trash", "unread")
_SETTING = "--state or XDG_STATE_HOME"

#: What passes by itself, or once somebody frees some space.
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def explain_directory_failure(directory: Path, verb: str, exc: OSError, setting: str = _SETTING) -> FleetError:
    """Return the error for an agent's directory that cannot be used; `verb`: "used", "written".

    `setting`: what names another place for it.
    """
    kind = FleetError if exc.errno in _PASSING else MachineUnfit
    told = f"the agent's directory {directory} cannot be {verb}: {exc.strerror}"
    return kind(told, hint=f"{setting} names another place for it")


def refuse_links(root: Path, paths: Iterable[str], setting: str) -> None:
    """Raise MachineUnfit where a link stands in place of a directory below `root`; `setting`: what moves all of it."""
    try:
        check_below(root, paths)
    except NotADirectoryError as exc:
        raise MachineUnfit(
            f"expected a directory at {exc.filename}, found a link or a file: an agent removes what it finds there",
            hint=f"remove it; {setting} moves all of {root} to another disk",
        ) from exc
    except OSError as exc:
        raise explain_directory_failure(Path(exc.filename or root), "used", exc, setting) from exc


class StateDirectory:
    """A locked state directory. The lock ends with the process, however that ends."""

    def __init__(self, directory: Path) -> None:
        """Create the directory if need be, and lock it.

        Raises FleetError where an agent holds it already, where it cannot be written, or for a link in it.
        """
        self.directory = directory
        try:
            make_private_directory(directory)
            self._lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            self._acquire()
            os.truncate(self._lock, 0)
            os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)
            remove_file(directory / _GOODBYE_FILE)
            refuse_links(directory, STATE_DIRECTORIES, _SETTING)
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
            write_atomically(self.directory / _GOODBYE_FILE, b"")

    def close(self) -> None:
        """Unlock the directory."""
        os.close(self._lock)
