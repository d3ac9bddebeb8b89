"""Where a user's own files are: below directories that the environment names, the home, or a place in /tmp."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from monkey.errors import FleetError

#: The rights of all but a file's owner.
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_TEMPORARY_HINT = (
    "remove it, or set HOME, or XDG_STATE_HOME, XDG_CACHE_HOME and XDG_CONFIG_HOME, to directories of your own"
)


def locate_user_directory(variable: str, below_home: str) -> Path:
    """Return the directory that `variable` names, or the one of this name in the home, or in a place in /tmp.

    Raises FleetError where it is in /tmp, and another user made that place or may have put something into it.
    """
    given = os.environ.get(variable, "")
    if given.startswith("/"):
        return Path(given)
    try:
        home = Path.home()
    except RuntimeError:  # an account without an entry in passwd, as in many containers
        home = Path("/")
    # Accounts of services have one that is not there, and that they cannot make: /nonexistent.
    if home == Path("/") or not (home.is_dir() or os.access(home.parent, os.W_OK)):
        home = _claim_temporary_home()
    return home / below_home


def _claim_temporary_home() -> Path:
    """Make a directory for an account without a home, or find the one that this account made."""
    place = Path(f"/tmp/monkey-{os.getuid()}")
    try:
        with contextlib.suppress(FileExistsError):
            place.mkdir(mode=0o700)
        status = place.lstat()
        ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
        if ours and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            if status.st_mode & _OTHERS:
                place.chmod(0o700)
            return place
    except OSError as exc:
        raise FleetError(f"{place} cannot be made: {exc.strerror}", hint=_TEMPORARY_HINT) from exc
    raise FleetError(
        f"expected {place} to be a directory of this account that no other can write to, found one that "
        f"{'others can write to' if ours else f'user {status.st_uid} made'}",
        hint=_TEMPORARY_HINT,
    )
