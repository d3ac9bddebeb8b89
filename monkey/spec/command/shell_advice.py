"""What people write in a script for an interactive bash that the shell of commands may not know."""

from __future__ import annotations

import re

#: Commands of plain words before: what stands in quotes, comments and here-documents is not read.
_BEFORE = r"(?:[\w./=~$ \[\]!{}()-]+(?:&&|\|\||;|\n))*\s*(?:(?:then|else|do|if|!|\{+)\s+|\()*"
_END = r"\s*(?:&&|\|\||;|\n|\)|$)"
_SOURCE = rf"{_BEFORE}source\s+(?!activate\b)([\w./~$-]+){_END}"
_ACTIVATE = rf"{_BEFORE}(conda|mamba|micromamba|source)\s+activate(?:\s+-n)?(?:\s+([\w./-]+))?{_END}"
#: What gives `sh` the functions that activate.
_HOOKS = ("conda.sh", "mamba.sh", "hook")
_INSTEAD = "or have monkey make the environment: environment: {requirements: requirements.txt}"


def suggest_activation(command: str | list[str]) -> str | None:
    """Return what to write instead of words that activate an environment in bash alone; None where there are none."""
    if not isinstance(command, str):
        return None
    if any(hook in command for hook in _HOOKS):
        return None
    if found := re.match(_SOURCE, command):
        return f"where there is no bash, the command's shell does not know `source`: write `. {found[1]}`, {_INSTEAD}"
    if found := re.match(_ACTIVATE, command):
        word = found[1]
        program = "conda" if word == "source" else word
        run = f"{program} run -n {found[2] or 'NAME'} python …"
        return f"the command's shell does not know `{word} activate`: write `{run}`, {_INSTEAD}"
    return None
