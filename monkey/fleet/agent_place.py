"""Whether an agent could keep its state in a directory of this machine: asked before anything is done for it."""

from __future__ import annotations

import fcntl
import tempfile
from pathlib import Path

from monkey.errors import FleetError
from monkey.fleet.agent_state import NO_LOCKS


def check_agent_place(directory: Path) -> None:
    """Raise FleetError where an agent could not write files in this directory, or lock them.

    It may be missing, and is not made: then that is tried in the nearest directory above it.
    """
    there = next(place for place in (directory, *directory.parents) if place.is_dir())
    try:
        with tempfile.TemporaryFile(dir=there) as probe:
            fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        missing = "locks" if exc.errno in NO_LOCKS else "room for its files"
        raise FleetError(
            f"expected {missing} for an agent in {directory}, found none in {there}: {exc.strerror}",
            hint="set XDG_STATE_HOME to a directory of yours on a disk of this machine",
        ) from exc
