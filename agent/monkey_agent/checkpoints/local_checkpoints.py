# ruff: noqa: PTH104, PTH208
# Paths are plain strings here: pathlib costs as much as the system calls.
"""The checkpoints that lie on this machine, so that a job that is tried again here need not fetch its own."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from monkey.removal import remove_below
from monkey.untrusted_files import hold_below
from monkey_agent.checkpoints import captures
from monkey_agent.checkpoints.captures import Capture

#: Days after which a checkpoint is given up whose job was not tried again on this machine.
ABANDONED = 30
_CHECKPOINTS = "checkpoints"
_NAME = re.compile(r"([0-9a-zA-Z]+)\.([0-9]+)\.([0-9]+)").fullmatch


class LocalCheckpoints:
    """Captures in `checkpoints/` of the state directory, named JOB.K.N: the N-th of the attempt claimed at K."""

    def __init__(self, state: Path) -> None:
        """Take over what earlier agents left; what is half-made or abandoned is removed. Raises OSError."""
        self._state = state
        self._directory = f"{state}/{_CHECKPOINTS}"
        #: Job to its captures, the newest last.
        self._known: dict[str, list[tuple[int, int]]] = {}
        #: Paths that could not be removed.
        self.stuck: list[str] = []
        self._parts = 0
        before = time.time() - ABANDONED * 86400
        with hold_below(state, _CHECKPOINTS, make=True) as directory:
            for entry in os.listdir(directory):
                name = _NAME(entry)
                changed = os.stat(entry, dir_fd=directory, follow_symlinks=False).st_mtime
                if name is None or changed < before:
                    self.remove(f"{self._directory}/{entry}")
                else:
                    self._known.setdefault(name[1], []).append((int(name[2]), int(name[3])))
        for spots in self._known.values():
            spots.sort()

    @property
    def jobs(self) -> list[str]:
        """Jobs that have one."""
        return list(self._known)

    def aside(self) -> str:
        """Return where a capture may be made. Raises OSError."""
        with hold_below(self._state, _CHECKPOINTS):
            self._parts += 1
        return f"{self._directory}/{self._parts}.part"

    def add(self, made: Capture, job: str, k: int) -> Capture:
        """Keep a capture that was made aside; older ones of the job are removed. Slow. Raises OSError."""
        spots = self._known.setdefault(job, [])
        spot = k, spots[-1][1] + 1 if spots and spots[-1][0] == k else 1
        capture = Capture(self._path(job, spot), made.tree, made.history)
        os.rename(made.root, capture.root)
        self._known[job] = [spot]
        for other in spots:
            self.remove(self._path(job, other))
        return capture

    def newest(self, job: str) -> tuple[int, Capture] | None:
        """Return the job's newest capture that is whole, and the claim under which it was made."""
        for spot in reversed(self._known.get(job, ())):
            capture = captures.read_capture(self._path(job, spot))
            if capture is not None:
                return spot[0], capture
        return None

    def forget(self, job: str) -> None:
        """Remove what there is of a job. Slow."""
        for spot in self._known.pop(job, ()):
            self.remove(self._path(job, spot))

    def _path(self, job: str, spot: tuple[int, int]) -> str:
        return f"{self._directory}/{job}.{spot[0]}.{spot[1]}"

    def remove(self, path: str) -> None:
        """Remove what is there of a capture, unless a link leads to it. Slow."""
        if not remove_below(self._state, f"{_CHECKPOINTS}/{path.rpartition('/')[2]}"):
            self.stuck.append(path)
