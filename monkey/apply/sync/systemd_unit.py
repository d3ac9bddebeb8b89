"""The systemd unit that keeps a sync running."""

from __future__ import annotations

import getpass
import re
import sys
from collections.abc import Sequence
from pathlib import Path

_UNIT = """\
[Unit]
Description=monkey sync: sweeps follow {what}
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
User={user}
WorkingDirectory={directory}
# Secrets, MONKEY_SIGNING_KEY, MONKEY_STORE and the like, if there are any.
EnvironmentFile=-{environment}
ExecStart={command}
Restart=always
RestartSec=15
# Agents that it started on this machine outlive it, as they outlive every apply.
KillMode=process
TimeoutStopSec=120
NoNewPrivileges=yes

[Install]
WantedBy=multi-user.target
"""
#: Where the unit reads variables.
ENVIRONMENT_FILE = "/etc/monkey/sync.env"


def compose_unit(arguments: Sequence[str], directory: Path, what: str) -> str:
    """Return the unit that runs `monkey sync` with these arguments in this directory, as this user.

    `what`: words for what is followed.
    """
    command = [sys.executable, "-P", "-m", "monkey.cli.main", "sync", *arguments]
    return _UNIT.format(
        what=_escape(what),
        user=getpass.getuser(),
        directory=_escape(str(directory)),
        environment=ENVIRONMENT_FILE,
        command=" ".join(map(_quote, command)),
    )


def _escape(text: str) -> str:
    """Return a value in which systemd finds no specifier, and no end of the line."""
    return re.sub(r"[\x00-\x1f]", " ", text).replace("%", "%%")


def _quote(word: str) -> str:
    """Return a word of a command as systemd reads it back."""
    plain = _escape(word).replace("$", "$$")
    return plain if re.fullmatch(r"[A-Za-z0-9@%+=:,./_$-]+", plain) else '"' + re.sub(r'(["\\])', r"\\\1", plain) + '"'
