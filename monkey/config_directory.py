"""The user's configuration directory: what a person writes, or has made once, for all projects."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from monkey.user_home import locate_user_directory


def locate_config_directory(environ: Mapping[str, str] | None = None) -> Path:
    """Return the configuration directory of monkey: below XDG_CONFIG_HOME, or ~/.config. It may not exist yet.

    `environ` has the variables, ours by default; then an account without a home has a place in /tmp. Raises FleetError
    where another user may have put something into that place.
    """
    if environ is None:
        return locate_user_directory("XDG_CONFIG_HOME", ".config") / "monkey"
    given = environ.get("XDG_CONFIG_HOME", "")
    home = Path(given) if given.startswith("/") else Path(environ.get("HOME") or "/", ".config")
    return home / "monkey"
