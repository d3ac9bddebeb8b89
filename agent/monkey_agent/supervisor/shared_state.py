# ruff: noqa: PTH105
# Paths are plain strings here: this is part of the supervisor, which starts without pathlib.
"""The register: a small file that agent and supervisor share, and that an agent's successor reads after a crash."""

from __future__ import annotations

import mmap
import os
import struct

_HEADER = struct.Struct("=40sd")
_ENTRY = struct.Struct("=qdd")
_EXIT = struct.Struct("=40sqqdq")
#: The entries of the supervisor and of its guard.
SUPERVISOR, GUARD = 0, 1
#: Number of jobs that fit in; further ones are found by their environment alone.
ENTRIES = 1024
#: Number of exits that fit in: as many as there may be between an attempt's end and its record in the store.
EXITS = 1024
_EXITS = _HEADER.size + _ENTRY.size * ENTRIES
_SIZE = _EXITS + _EXIT.size * EXITS
#: Worth of an exit to an agent's successor: nothing, since another process may have ended the job; the job's own exit;
#: the exit of a job that the agent ended, as it timed out; or of one that took too much memory (its peak is the job's).
NOTHING, OWN, TIMED_OUT, EXCEEDED = 0, 1, 2, 3
#: Exit codes above this one are those of shells for a job that a signal ended: this plus the signal's number.
SIGNALLED = 128


class SharedState:
    """The register: a small file, mapped by agent and supervisor, with the deadline and the running processes.

    After a crash, the next agent reads it. An entry is (pid, clock before the start, clock after the start). Together
    they tell a process from a later one with the same pid. The first two entries are the supervisor and its guard.

    An exit says how an attempt's process ended. It needs no sync. After a crash of a process, all that it wrote is
    there. After a loss of power, the boot is another, and the attempt's own files may be damaged as well.
    """

    def __init__(self, path: str) -> None:
        """Map the file. Raises OSError or ValueError where it is no register."""
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            self._map = mmap.mmap(fd, _SIZE)
        finally:
            os.close(fd)
        self._free = list(range(ENTRIES - 1, GUARD, -1))
        self._exits = 0

    @staticmethod
    def create(path: str, boot: str) -> SharedState:
        """Make an empty register: no process runs, and the deadline has passed. Raises OSError."""
        aside = f"{path}.{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(aside, flags, 0o600)
        try:
            # All of it is written: a mapped hole on a full disk would be a SIGBUS later.
            with open(fd, "wb", closefd=False) as file:
                file.write(_HEADER.pack(boot.encode()[:40], 0.0) + bytes(_SIZE - _HEADER.size))
        finally:
            os.close(fd)
        os.replace(aside, path)
        return SharedState(path)

    @property
    def boot(self) -> str:
        """Return the id of the machine's boot in which the register was made."""
        return str(_HEADER.unpack_from(self._map)[0].rstrip(b"\0").decode())

    @property
    def deadline(self) -> float:
        """Return the clock's time at which the supervisor freezes all jobs."""
        return float(_HEADER.unpack_from(self._map)[1])

    @deadline.setter
    def deadline(self, at: float) -> None:
        struct.pack_into("=d", self._map, 40, at)

    def enter(self, pid: int, before: float, after: float, entry: int | None = None) -> int:
        """Note that `pid` was started; return the number of its entry, or -1 where the register is full."""
        if entry is None:
            entry = self._free.pop() if self._free else -1
        if entry >= 0:
            _ENTRY.pack_into(self._map, _HEADER.size + entry * _ENTRY.size, pid, before, after)
        return entry

    def leave(self, entry: int) -> None:
        """Forget an entry."""
        if entry >= 0:
            self.enter(0, 0.0, 0.0, entry)
            self._free.append(entry)

    def entries(self) -> list[tuple[int, float, float]]:
        """Return (pid, before, after) of supervisor, guard and all running jobs; the pid of a missing one is 0."""
        data = self._map[_HEADER.size : _EXITS]
        supervisor, guard, *jobs = _ENTRY.iter_unpack(data)
        return [supervisor, guard, *(job for job in jobs if job[0])]

    def note_exit(self, name: str, worth: int, code: int, seconds: float, peak: int) -> int:
        """Note the exit of the attempt `name`, in place of the oldest exit; return its position."""
        self._exits = (self._exits + 1) % EXITS
        _EXIT.pack_into(self._map, _EXITS + self._exits * _EXIT.size, name.encode(), worth, code, seconds, peak)
        return self._exits

    def judge_exit(self, at: int, name: str, worth: int) -> None:
        """Set the worth of the exit at position `at`, unless another has replaced it by now."""
        place = _EXITS + at * _EXIT.size
        if _EXIT.unpack_from(self._map, place)[0].rstrip(b"\0") == name.encode():
            struct.pack_into("=q", self._map, place + 40, worth)

    def exits(self) -> dict[str, tuple[int, int, float, int]]:
        """Return the exits that are worth something: name to (worth, code, seconds, peak)."""
        noted = _EXIT.iter_unpack(self._map[_EXITS:])
        return {
            name.rstrip(b"\0").decode(errors="replace"): (worth, code, seconds, peak)
            for name, worth, code, seconds, peak in noted
            if worth
        }

    def close(self) -> None:
        """Unmap the file."""
        self._map.close()
