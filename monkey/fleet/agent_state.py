"""Where an agent keeps what must outlive it on this machine, and whether one lives there.

Both sides use this file: the agent, which holds the lock, and the fleet that starts it and asks whether it lives.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path


def locate_state_home() -> Path:
    """Return where this user's programs keep their state: XDG_STATE_HOME, ~/.local/state, or a place in /tmp."""
    return _user_directory("XDG_STATE_HOME", ".local/state")


def locate_cache_home() -> Path:
    """Return where monkey keeps what can be had again: below XDG_CACHE_HOME, ~/.cache, or a place in /tmp."""
    return _user_directory("XDG_CACHE_HOME", ".cache") / "monkey"


def _user_directory(variable: str, below_home: str) -> Path:
    given = os.environ.get(variable, "")
    if given.startswith("/"):
        return Path(given)
    nowhere = Path(f"/tmp/monkey-{os.getuid()}") / below_home
    try:
        home = Path.home()
    except RuntimeError:  # an account without an entry in passwd, as in many containers
        return nowhere
    return home / below_home if home != Path("/") else nowhere


def make_host_name() -> str:
    """Return the name of this machine as a name of an agent: letters, digits, '-', '_' and '.' alone."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in os.uname().nodename)
    return name.strip(".-") or "localhost"


def locate_agent_state(store_url: str, project: str, fleet: str, name: str) -> Path:
    """Return the directory of one agent: lock, agent.log, attempts, checkpoints. It may not exist yet.

    `store_url` is the store's own `url` (normalised), so that both sides say the same of one place.
    """
    place = sha256(f"{store_url}\n{project}".encode()).hexdigest()[:12]
    return locate_state_home() / "monkey" / place / fleet / name


def is_agent_alive(directory: Path) -> bool:
    """Say whether an agent holds the lock of this state directory (asking takes no lock that an agent could meet)."""
    import fcntl

    try:
        lock = os.open(directory / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def read_agent_pid(directory: Path) -> int | None:
    """Return the process that holds (or last held) the lock, as it wrote into it; None where it did not."""
    try:
        return int((directory / "lock").read_bytes().split()[0])
    except (OSError, ValueError, IndexError):
        return None
