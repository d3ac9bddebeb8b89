"""Attempts that exited, and whose end a killed agent did not record: its successor continues from there."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

from monkey.files import open_regular
from monkey.tree_removal import remove_tree
from monkey_agent.execution.workspace import Workspace

#: Beside what such an attempt left: how it exited.
NOTE = "exit"
#: Seconds after which nobody will ask for it any more.
_KEPT_SECONDS = 7 * 86400
#: How an attempt exited: what the exit is worth, code, seconds, peak, as the register has it.
Exited = tuple[int, int, float, int]


class UnrecordedAttempts:
    """The workspaces of such attempts, in `left/` of the state directory, until somebody gives them up."""

    def __init__(self, state: Path, exits: Mapping[str, Exited]) -> None:
        """Take them out of the predecessor's workspaces; `exits`: what the register noted, by name. Raises OSError."""
        self._directory = state / "left"
        self._directory.mkdir(exist_ok=True)
        for name, how in exits.items():
            with contextlib.suppress(OSError):
                self._keep(state / "attempts" / name, how)
        #: Job to the position of the claim whose attempt is left, and how that exited.
        self.found = dict(filter(None, map(self._look, self._directory.iterdir())))

    def _keep(self, space: Path, how: Exited) -> None:
        # The note comes first: whatever is among the left has one.
        with open(open_regular(f"{space}/{NOTE}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as note:  # noqa: PTH123
            json.dump(how, note)
        space.rename(self._directory / space.name)

    def _look(self, space: Path) -> tuple[str, tuple[int, Exited]] | None:
        job, _, k = space.name.partition(".")
        note = space / NOTE
        try:
            worth, code, seconds, peak = json.loads(note.read_bytes())
            if time.time() - note.stat().st_mtime < _KEPT_SECONDS:
                return job, (int(k), (worth, code, seconds, peak))
        except (OSError, ValueError, TypeError):
            pass  # half-written
        remove_tree(str(space))
        return None

    def workspace(self, job: str) -> Workspace:
        """Return what is left of a job's attempt."""
        space = Workspace(job, str(self._directory / f"{job}.{self.found[job][0]}"))
        space.spoilt = True  # no other attempt gets it
        return space

    def forget(self, space: Workspace) -> None:
        """Nobody needs it any more, if it is one of those."""
        if space.root.startswith(f"{self._directory}/"):
            self.found.pop(space.job, None)
