# ruff: noqa: PTH102, PTH103, PTH104, PTH208
# Paths are plain strings here: pathlib costs as much as the system calls.
"""The directories of an attempt. One that was left as empty as it was given out is handed to the next job."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Directories that are kept for the next jobs; making one costs ten times what renaming it does.
SPARE = 64
#: Days after which the checkpoints of a job are given up that was not tried again on this machine.
ABANDONED = 30


class Workspace:
    """Where an attempt runs; plain paths."""

    __slots__ = ("checkpoint", "log", "metrics", "outputs", "root", "work")

    def __init__(self, root: str, checkpoint: str) -> None:
        """Name the directories below `root`; `checkpoint` outlives the attempt."""
        self.root, self.checkpoint = root, checkpoint
        self.work, self.outputs, self.metrics = f"{root}/work", f"{root}/outputs", f"{root}/metrics"
        #: Holds stdout and stderr.
        self.log = f"{root}/log"

    def is_untouched(self) -> bool:
        """Say whether the job left these directories as empty as they were; its log is not looked at."""
        try:
            return not (os.listdir(self.work) or os.listdir(self.outputs) or os.listdir(self.metrics))
        except OSError:
            return False


class Workspaces:
    """All attempts of an agent, in `attempts/` and `checkpoints/` of its state directory."""

    def __init__(self, state: Path) -> None:
        """Take over the state directory; what earlier agents left of attempts goes to `trash` (see `empty_trash`)."""
        self._attempts, self._checkpoints = f"{state}/attempts", f"{state}/checkpoints"
        self._trash = f"{state}/trash"
        os.makedirs(self._trash, exist_ok=True)
        if os.path.isdir(self._attempts):  # noqa: PTH112
            os.rename(self._attempts, f"{self._trash}/{time.time_ns()}")
        os.makedirs(self._attempts)
        os.makedirs(self._checkpoints, exist_ok=True)
        self._spare_roots: list[str] = []
        self._spare_checkpoints: list[str] = []
        self._count = 0

    def take(self, job: str, k: int) -> Workspace:
        """Return the workspace of a new attempt: empty, but for the checkpoints of earlier ones. Raises OSError."""
        space = Workspace(f"{self._attempts}/{job}.{k}", f"{self._checkpoints}/{job}")
        if self._spare_roots:
            os.rename(self._spare_roots.pop(), space.root)
        else:
            for path in (space.root, space.work, space.outputs, space.metrics):
                os.mkdir(path)
        if self._spare_checkpoints:
            # Replaces an empty directory, and leaves one alone that holds something.
            spare = self._spare_checkpoints.pop()
            try:
                os.rename(spare, space.checkpoint)
            except OSError:
                self._spare_checkpoints.append(spare)
        else:
            with contextlib.suppress(FileExistsError):
                os.mkdir(space.checkpoint)
        return space

    def give(self, space: Workspace, *, finished: bool, untouched: bool) -> None:
        """Take a workspace back. `finished`: the job needs no checkpoint any more; `untouched`: nothing is in it."""
        self._count += 1
        if untouched and len(self._spare_roots) < SPARE:
            with contextlib.suppress(OSError):
                spare = f"{self._attempts}/spare.{self._count}"
                os.rename(space.root, spare)
                self._spare_roots.append(spare)
        else:
            self._discard(space.root)
        if finished:
            self._give_checkpoint(space.checkpoint)

    def _give_checkpoint(self, path: str) -> None:
        with contextlib.suppress(OSError):
            if os.listdir(path) or len(self._spare_checkpoints) >= SPARE:
                self._discard(path)
                return
            spare = f"{self._checkpoints}/spare.{self._count}"
            os.rename(path, spare)
            self._spare_checkpoints.append(spare)

    def _discard(self, path: str) -> None:
        """Move a tree to the trash, or remove it where that is as quick."""
        with contextlib.suppress(OSError):
            os.rename(path, f"{self._trash}/{time.time_ns()}.{self._count}")

    def empty_trash(self) -> None:
        """Remove what was discarded: slow, and to be called in another thread."""
        for name in os.listdir(self._trash):
            remove_tree(f"{self._trash}/{name}")

    def forget_old_checkpoints(self) -> None:
        """Discard checkpoints that nobody came back to."""
        before = time.time() - ABANDONED * 86400
        for entry in os.scandir(self._checkpoints):
            with contextlib.suppress(OSError):
                if entry.stat().st_mtime < before:
                    self._discard(entry.path)

    def close(self) -> None:
        """Remove what was kept for the next jobs."""
        for path in (*self._spare_roots, *self._spare_checkpoints):
            remove_tree(path)
        self._spare_roots.clear()
        self._spare_checkpoints.clear()
        self.empty_trash()


def remove_tree(path: str) -> None:
    """Remove a tree as far as possible, also one whose directories the job made read-only."""
    shutil.rmtree(path, onerror=_retry_writable)


def _retry_writable(function: Callable[..., Any], path: str, _: object) -> None:
    with contextlib.suppress(OSError):
        parent = os.path.dirname(path)  # noqa: PTH120
        for directory in (parent, path):
            if os.path.isdir(directory) and not os.path.islink(directory):  # noqa: PTH112, PTH114
                os.chmod(directory, stat.S_IRWXU)  # noqa: PTH101
        if function in (os.unlink, os.rmdir):
            function(path)
        else:
            shutil.rmtree(path, ignore_errors=True)
