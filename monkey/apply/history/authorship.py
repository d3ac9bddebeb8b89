"""The author and time of what is written into a sweep's log, for people who read its history."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime

from monkey.ci_run import read_ci_run
from monkey.fleet.agent_state import make_host_name


def name_author() -> str:
    """Return who works here: in CI, the person who caused the run; else user and machine."""
    run = read_ci_run()
    if run is not None and run.actor:
        return run.actor
    try:
        return f"{getpass.getuser()}@{make_host_name()}"
    except (KeyError, OSError):  # an account without a name, as in many containers
        return make_host_name()


def stamp_entry() -> dict[str, str]:
    """Return the fields of an entry that say who writes it, and when."""
    return {"author": name_author(), "at": datetime.now(UTC).isoformat(timespec="seconds")}
