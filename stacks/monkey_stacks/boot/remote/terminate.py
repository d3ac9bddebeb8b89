"""The end of a rented machine, by itself: its group shrinks by one, where asked, and the machine powers off."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Any

from monkey.fleet.cloud.http_client import retry_ask
from monkey_stacks.boot.remote.boot_report import note_end, say_line

#: Seconds of retries while the group does not let the machine go, and while it does not answer.
INSIST, SILENT = 30.0, 5.0


def end_machine(cloud: Any, settings: Mapping[str, Any], why: str, shrinks: bool, failed: bool) -> None:
    """End this machine, even if its cloud does not answer. `shrinks`: the group gets no replacement.

    `failed`: the store gets a note, and the agent is killed.
    """
    try:
        say_line(f"this machine goes: {why}")
        if failed:
            note_end(cloud, settings, why)
        if shrinks:
            retry_ask(cloud.leave, INSIST, SILENT)
    except Exception as exc:  # whatever it is, the machine goes
        print(f"monkey: its group is not told: {exc}", flush=True)
    if failed:  # it would take minutes to give up
        _systemctl("kill", "--signal=KILL", "monkey-agent.service")
    # Its launch template says that who shuts down is gone.
    if not _systemctl("poweroff"):
        _systemctl("poweroff", "--force", "--force")


def _systemctl(*words: str) -> bool:
    return subprocess.run(["systemctl", *words], stdin=subprocess.DEVNULL).returncode == 0
