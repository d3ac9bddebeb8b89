"""What an agent was started with, so far as its jobs get it: the environment, its Python, the version of monkey.

The agent writes digests of it beside its lock; `apply` compares. Of values only digests are kept, under a key
that is drawn for each agent: the file tells names, and nothing of what they hold.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from monkey.atomic_write import write_atomically
from monkey.fleet.agent_state import read_agent_pid
from monkey.fleet.fleet_records import OutdatedAgent
from monkey.version import __version__

#: The files, in the agent's directory: what the agent writes, and what `apply` does that started it.
_DIGEST_FILE, _SETTINGS_FILE = "surroundings.json", "settings.json"

#: Variables that tell of a terminal, a login or a shell, not of what programs do: each new window has others.
_PASSING = {
    *("_", "SHLVL", "PWD", "OLDPWD", "PS1", "PS2", "PROMPT", "PROMPT_COMMAND", "HISTFILE", "HISTSIZE", "HISTCONTROL"),
    *("TERM", "COLORTERM", "NO_COLOR", "COLUMNS", "LINES", "WINDOW", "WINDOWID", "STY", "DISPLAY", "WAYLAND_DISPLAY"),
    *("DBUS_SESSION_BUS_ADDRESS", "XAUTHORITY", "SECURITYSESSIONID", "INVOCATION_ID", "JOURNAL_STREAM", "MAIL"),
    *("LS_COLORS", "LESS", "LESSOPEN", "LESSCLOSE", "PAGER", "EDITOR", "VISUAL", "SUDO_COMMAND", "VIRTUAL_ENV_PROMPT"),
    "PYTEST_CURRENT_TEST",
}
_PASSING_PREFIXES = (
    *(
        "__",
        "MONKEY_",
        "SSH_",
        "GPG_",
        "XDG_SESSION",
        "XDG_VTNR",
        "XDG_SEAT",
        "TERM_",
        "TMUX",
        "VTE_",
        "KITTY_",
        "ITERM_",
    ),
    *("ALACRITTY_", "WEZTERM_", "KONSOLE_", "GNOME_TERMINAL_", "VSCODE_", "BASH_FUNC_"),
)


def record_environment(directory: Path, agent: str) -> None:
    """Write down what this process was started with; `agent` names it as its heartbeats do. Raises OSError."""
    key = secrets.token_bytes(16)
    said = {"agent": agent, "pid": os.getpid(), "key": key.hex(), "digests": digest_environment(key, os.environ)}
    write_atomically(directory / _DIGEST_FILE, json.dumps(said), mode=0o600)


def compare_environment(directory: Path) -> OutdatedAgent | None:
    """Return in what the living agent of this directory differs from one that we would start; `differs` may be empty.

    None where it has not written it down (yet).
    """
    try:
        said = json.loads((directory / _DIGEST_FILE).read_bytes())
        agent, pid, theirs = str(said["agent"]), int(said["pid"]), dict(said["digests"])
        ours = digest_environment(bytes.fromhex(said["key"]), os.environ)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if pid != read_agent_pid(directory):
        return None  # of an earlier life
    differing = {name for name in {*theirs, *ours} if theirs.get(name) != ours.get(name)}
    return OutdatedAgent(agent, tuple(sorted(differing)))


def record_settings(directory: Path, pid: int, settings: Mapping[str, str]) -> None:
    """Write down with which settings of monkey.yaml the agent of process `pid` was started. Raises OSError."""
    write_atomically(directory / _SETTINGS_FILE, json.dumps({"pid": pid, "settings": settings}), mode=0o600)


def compare_settings(directory: Path, settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of those that differ from what the living agent was started with; () if that is unknown.

    It is unknown of an agent that a person started: its options are that person's.
    """
    try:
        said = json.loads((directory / _SETTINGS_FILE).read_bytes())
        theirs = dict(said["settings"]) if said["pid"] == read_agent_pid(directory) else settings
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    return tuple(name for name, value in settings.items() if theirs.get(name) != value)


def digest_environment(key: bytes, environment: Mapping[str, str]) -> dict[str, str]:
    """Return names to digests of all that jobs get."""
    told = {name: value for name, value in environment.items() if not _passing(name)}
    told |= {"the Python": sys.executable, "the version of monkey": __version__}
    return {name: blake2b(os.fsencode(value), key=key, digest_size=8).hexdigest() for name, value in told.items()}


def _passing(name: str) -> bool:
    return name in _PASSING or name.startswith(_PASSING_PREFIXES)
