"""Where a user's programs keep what must outlive them on this machine: state, and what can be had again."""

from __future__ import annotations

import contextlib
import os
import stat
from hashlib import sha256
from pathlib import Path

from monkey.untrusted_files import make_private_directory
from monkey.user_home import locate_user_directory

#: The rights of all but a file's owner.
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def locate_state_home() -> Path:
    """Return where this user's programs keep their state: XDG_STATE_HOME, ~/.local/state, or a place in /tmp.

    Raises FleetError where it is in /tmp, and another user made that place or may have put something into it.
    """
    return locate_user_directory("XDG_STATE_HOME", ".local/state")


def open_cache_home() -> Path:
    """Return where monkey keeps what can be had again: below XDG_CACHE_HOME, ~/.cache, or a place in /tmp.

    The directory is this user's alone, since code and data are in it. Raises FleetError as `locate_state_home` does.
    """
    home = locate_user_directory("XDG_CACHE_HOME", ".cache") / "monkey"
    with contextlib.suppress(OSError):  # a home that cannot be written: the first file says so
        make_private_directory(home)
        status = home.stat()
        if status.st_uid == os.geteuid() and status.st_mode & _OTHERS:
            home.chmod(0o700)
    return home


def locate_agent_state(store_url: str, project: str, fleet: str, name: str) -> Path:
    """Return the directory of one agent: lock, agent.log, attempts, checkpoints. It may not exist yet.

    `store_url` is the store's own `url` (normalised), so that both sides say the same of one place.
    """
    place = sha256(f"{store_url}\n{project}".encode()).hexdigest()[:12]
    return locate_state_home() / "monkey" / place / fleet / name
