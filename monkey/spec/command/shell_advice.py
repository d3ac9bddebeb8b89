"""What people write in a script for bash that `sh` does not know."""

from __future__ import annotations

import re

#: Ways to activate an environment, as a command of their own.
_SOURCE = re.compile(r"(?:^|[;&|(\n])\s*source\s+(\S+)")
_ACTIVATE = re.compile(r"(?:^|[;&|(\n])\s*((?:conda|mamba|micromamba)\s+activate)\b(?:\s+([^\s;&|]+))?")


def suggest_activation(command: str | list[str]) -> str | None:
    """Return what to write instead of a word that activates an environment in bash alone; None where there is none."""
    if not isinstance(command, str):
        return None
    own = "or have monkey make the environment: environment: {requirements: requirements.txt}"
    if found := _SOURCE.search(command):
        return f"the command runs under sh, which may not know `source`: write `. {found[1]}`, {own}"
    if found := _ACTIVATE.search(command):
        run = f"{found[1].split()[0]} run -n {found[2] or 'NAME'} python …"
        return f"the command runs under sh, which does not know `{found[1]}`: write `{run}`, {own}"
    return None
