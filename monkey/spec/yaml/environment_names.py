"""Names of environment variables, and those that hold no secret because programs need them to run."""

from __future__ import annotations

import re

VARIABLE_NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SYSTEM_VARIABLES = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "TERM", "PWD", "VIRTUAL_ENV"}
_SYSTEM_VARIABLE_PREFIXES = ("MONKEY_", "LC_", "LD_", "DYLD_", "PYTHON", "XDG_")


def is_system_variable(name: str) -> bool:
    """Say whether programs need the variable: what is secret is kept from jobs that do not list it."""
    return name in _SYSTEM_VARIABLES or name.startswith(_SYSTEM_VARIABLE_PREFIXES)
