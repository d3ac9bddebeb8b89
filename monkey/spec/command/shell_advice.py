"""What people write in a script for bash that `sh` does not know."""

from __future__ import annotations

import re

#: Commands of plain words before: what stands in quotes, comments and here-documents is not read.
_BEFORE = r"(?:[\w./=~$ -]+(?:&&|;|\n))*\s*"
_SOURCE = re.compile(rf"{_BEFORE}source\s+(?!activate\b)([\w./~$-]+)\s*(?:&&|;|\n|$)")
_ACTIVATE = re.compile(
    rf"{_BEFORE}((?:conda|mamba|micromamba)\s+|source\s+)activate(?:\s+-n)?(?:\s+([\w./-]+))?\s*(?:&&|;|\n|$)"
)
#: What gives `sh` the functions that activate.
_HOOKS = ("conda.sh", "mamba.sh", "hook")


def suggest_activation(command: str | list[str]) -> str | None:
    """Return what to write instead of words that activate an environment in bash alone; None where there are none."""
    if not isinstance(command, str) or any(hook in command for hook in _HOOKS):
        return None
    own = "or have monkey make the environment: environment: {requirements: requirements.txt}"
    if found := _SOURCE.match(command):
        return f"the command runs under sh, which may not know `source`: write `. {found[1]}`, {own}"
    if found := _ACTIVATE.match(command):
        program = found[1].strip() if found[1].strip() != "source" else "conda"
        run = f"{program} run -n {found[2] or 'NAME'} python …"
        return f"the command runs under sh, which does not know `{found[1].strip()} activate`: write `{run}`, {own}"
    return None
