"""This machine's side of the lock: a file that a holder and all that it starts keep open."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import time
from pathlib import Path

from monkey.errors import FleetError
from monkey.fleet.fleet_port import Say
from monkey.fleet.incarnations import record_life
from monkey.untrusted_files import make_private_directory

#: In the environment of all that a holder starts: where it was started.
MARK = "MONKEY_STACK"
#: Seconds between looks at a lock file that another process has.
_POLL_SECONDS = 0.1
#: Seconds that processes may take to go that were killed.
_PATIENCE_SECONDS = 10.0


class LockDirectory:
    """The directory of one fleet's machines on this machine. Its lock goes when all who hold it are gone."""

    def __init__(self, directory: Path) -> None:
        """Name it; it is made when it is entered."""
        self.directory = directory
        self._lock = -1

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What processes must inherit to hold the lock, too."""
        return (self._lock,) if self._lock >= 0 else ()

    @property
    def mark(self) -> dict[str, str]:
        """What marks a process as started here."""
        return {MARK: str(self.directory)}

    async def enter(self, say: Say) -> bool:
        """Lock it, and end what dead holders left; True where another process had it meanwhile. Raises FleetError."""
        try:
            make_private_directory(self.directory)
            lock = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as exc:
            raise FleetError(
                f"{self.directory} cannot be written: {exc.strerror}", hint="XDG_STATE_HOME names another place for it"
            ) from exc
        try:
            waited = await self._wait(lock, say)
        except BaseException:
            os.close(lock)
            raise
        self._lock = lock
        os.truncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        return waited

    async def _wait(self, lock: int, say: Say) -> bool:
        told = False
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return told
            holder = os.pread(lock, 32, 0).decode(errors="replace").strip()
            if holder.isdigit() and not _alive(int(holder)):
                # Dead, and its leash with it: what Pulumi is doing still, it does for nobody.
                await asyncio.to_thread(self._end)
            elif not told:
                say(f"waiting for another process on this machine (process {holder or '?'})")
                told = True
            await asyncio.sleep(_POLL_SECONDS)

    def begin(self, life: str) -> frozenset[str]:
        """Write down that `life` begins, and return those that began here before: of them nothing runs any more."""
        self._end()
        return record_life(self.directory, life)

    def leave(self) -> None:
        """Unlock it."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _end(self) -> None:
        """Kill what is marked as started here by one who is dead. Raises FleetError where it does not go."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while left := self._marked():
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > until:
                raise FleetError(
                    f"processes {', '.join(map(str, left))} of an earlier apply do not end, though killed",
                    hint="they may wait for a disk or a network share that does not answer; restart the machine",
                )
            time.sleep(0.01)

    def _marked(self) -> list[int]:
        wanted, found = f"{MARK}={self.directory}".encode(), []
        for environ in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):  # gone, or not ours
                pid = int(environ.parent.name)
                if pid != os.getpid() and wanted in environ.read_bytes().split(b"\0") and _alive(pid):
                    found.append(pid)
        return found


def _alive(pid: int) -> bool:
    """Say whether a process is there, and is no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return not Path("/proc/self").exists()
