"""Ends of attempts that may not be in the store yet: noted here first, so that kill -9 of the agent repeats none.

An end entry is synced before it is published, which takes milliseconds; the seat is used again meanwhile. Were the
agent killed then, its successor would find claims alone, and run again what had ended. The note needs no sync: what a
killed process wrote is there, and what a loss of power takes away costs one more execution.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from monkey.protocol.entries import Claim, End, decode
from monkey.protocol.log import Log
from monkey_agent.ports import Paper

#: Bytes after which what is in the store by now is dropped.
ENOUGH = 256 * 1024
#: Notes of earlier lives that are kept: each leaves a few.
KEPT = 1000


class Unrecorded:
    """The ends that this life of an agent has not yet brought to the store, and those that earlier lives had not.

    A line `+JOB K ENTRY` notes an end, `-JOB` that it is recorded.
    """

    def __init__(self, paper: Paper, ours: Callable[[str], bool]) -> None:
        """Note on `paper`; `ours` says of an agent whether it is this one or an earlier life of it on this machine."""
        self._paper, self._ours = paper, ours
        self._open: dict[str, bytes] = {}
        #: Lines that can wait for the next note.
        self._told = b""
        self._size = 0
        for line in paper.read().split(b"\n"):
            job = line[1:].partition(b" ")[0].decode(errors="replace")
            self._open.pop(job, None)
            if line[:1] == b"+":
                self._open[job] = line
        #: Job to the position of the claim and the end that earlier lives noted.
        self._found = dict(filter(None, map(_parsed, list(self._open.items())[-KEPT:])))
        self._open = {job: line for job, line in self._open.items() if job in self._found}

    def note(self, job: str, k: int, end: End) -> None:
        """Note how the attempt under the claim at `k` ended."""
        line = self._open[job] = b"+%s %d %s" % (job.encode(), k, end.encode())
        # Each begins a line: one before may have been cut short.
        data, self._told = b"%s\n%s" % (self._told, line), b""
        self._size += len(data)
        self._paper.append(data)

    def recorded(self, job: str) -> None:
        """The job's log says by now what became of the attempt."""
        self._found.pop(job, None)
        if self._open.pop(job, None) is None:
            return
        self._told += b"\n-" + job.encode()
        if self._size > ENOUGH:
            data, self._told = b"\n".join(self._open.values()), b""
            self._size = len(data)
            self._paper.replace(data)

    def find(self, job: str, log: Log) -> End | None:
        """Return how an earlier life's attempt at the job ended, if nothing has been done about the job since.

        `log` is read to its end, which is a claim of ours.
        """
        k, end = self._found.get(job, (0, None))
        if end is None or not log.skipped < k <= log.head:
            return None
        first, *later = log.entries[k - log.skipped - 1 :]
        if not isinstance(first, Claim) or (first.agent, first.nonce) != (end.agent, end.nonce):
            return None
        # None of those who claimed it since ran it: they found this note, too.
        return end if all(isinstance(entry, Claim) and self._ours(entry.agent) for entry in later) else None


def _parsed(item: tuple[str, bytes]) -> tuple[str, tuple[int, End]] | None:
    job, line = item
    _, k, body = (line + b"  ").split(b" ", 2)
    end = decode("a note", body)
    return (job, (int(k), end)) if isinstance(end, End) and k.isdigit() else None


class FilePaper:
    """The real `Paper`: a file that one process at a time uses."""

    def __init__(self, path: Path) -> None:
        """Write to `path`."""
        self._path = path
        self._fd = -1

    def read(self) -> bytes:
        """See `Paper.read`."""
        try:
            return self._path.read_bytes()
        except OSError:
            return b""

    def append(self, data: bytes) -> None:
        """See `Paper.append`."""
        with contextlib.suppress(OSError):
            if self._fd < 0:
                self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.write(self._fd, data)

    def replace(self, data: bytes) -> None:
        """See `Paper.replace`."""
        aside = self._path.with_suffix(".new")
        with contextlib.suppress(OSError):
            aside.write_bytes(data)
            aside.replace(self._path)
            self.close()

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
