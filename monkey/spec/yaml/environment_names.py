"""Names of environment variables, and those that hold no secret because programs need them to run."""

from __future__ import annotations

import re

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_NEEDED = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "TERM", "PWD", "VIRTUAL_ENV"}
_NEEDED_PREFIXES = ("MONKEY_", "LC_", "LD_", "DYLD_", "PYTHON", "XDG_")


def is_needed(name: str) -> bool:
    """Say whether programs need the variable: what is secret is kept from jobs that do not list it."""
    return name in _NEEDED or name.startswith(_NEEDED_PREFIXES)
