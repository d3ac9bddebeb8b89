"""Attempts that exited and whose end a killed agent did not record: its successor records them."""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monkey.removal import remove_below
from monkey.untrusted_files import hold_below, load_json, open_regular
from monkey_agent.containers.container_start import is_mark_whole
from monkey_agent.execution.workspace import CONTAINER_MARK_FILE, Workspace
from monkey_agent.supervisor import leftover_processes

#: The directory of them in the state.
_LEFT = "left"
#: Name of the file in such a workspace that says how the attempt exited.
NOTE = "exit"
#: Bytes of it that are read.
_MOST_BYTES = 1 << 10
#: Seconds after which such a workspace is removed.
_KEPT_SECONDS = 7 * 86400
#: The exit of an attempt: its worth, code, seconds, peak, as the register has them.
Exited = tuple[int, int, float, int]


def read_own_exits(state: Path) -> dict[str, Exited]:
    """Return the exits in the register, by attempt, but for those of a runtime that did not begin the container."""
    exits = leftover_processes.read_exits(state)
    marks = {name: f"{state}/attempts/{name}/{CONTAINER_MARK_FILE}" for name in exits}
    return {name: how for name, how in exits.items() if not is_mark_whole(marks[name])}


def _read_exit(note: Any) -> Exited:
    """Return the exit that a note tells; a job can put anything there. Raises ValueError, TypeError."""
    worth, code, seconds, peak = note
    if not all(type(number) is int for number in (worth, code, peak)) or not isinstance(seconds, float):
        raise TypeError("not the numbers of an exit")
    if not 0 <= seconds < math.inf:
        raise ValueError("no time that an attempt can take")
    return worth, code, seconds, peak


class UnrecordedAttempts:
    """The workspaces of attempts without a recorded end, in `left/` of the state directory."""

    def __init__(self, state: Path, exits: Mapping[str, Exited]) -> None:
        """Move them from the earlier agent's workspaces; `exits`: the register's exits, by name. Raises OSError."""
        self._state, self._directory = state, state / _LEFT
        with hold_below(state, _LEFT, make=True):
            for name, how in exits.items():
                with contextlib.suppress(OSError):
                    self._keep(state / "attempts" / name, how)
            #: Job to the position of the attempt's claim, and to its exit.
            self.found = dict(filter(None, map(self._look, self._directory.iterdir())))

    def _keep(self, space: Path, how: Exited) -> None:
        # The note comes first: whatever is among the left has one.
        with open(open_regular(f"{space}/{NOTE}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as note:  # noqa: PTH123
            json.dump(how, note)
        space.rename(self._directory / space.name)

    def _look(self, space: Path) -> tuple[str, tuple[int, Exited]] | None:
        job, _, k = space.name.partition(".")
        try:
            exited = _read_exit(load_json(f"{space}/{NOTE}", _MOST_BYTES))
            if time.time() - (space / NOTE).lstat().st_mtime < _KEPT_SECONDS:
                return job, (int(k), exited)
        except (OSError, ValueError, TypeError):
            pass  # half-written, or the job's own
        remove_below(self._state, f"{_LEFT}/{space.name}")
        return None

    def workspace(self, job: str) -> Workspace:
        """Return the workspace that a job's attempt left."""
        space = Workspace(job, str(self._directory / f"{job}.{self.found[job][0]}"))
        space.spoilt = True  # no other attempt gets it
        return space

    def forget(self, space: Workspace) -> None:
        """Forget a workspace that is given back, if it is one of these."""
        if space.root.startswith(f"{self._directory}/"):
            self.found.pop(space.job, None)
