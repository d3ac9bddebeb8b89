"""The machine that the agent runs on: its clock and its identity."""

from __future__ import annotations

import sys
from pathlib import Path

from monkey.protocol.clock import CLOCK, MachineClock

__all__ = ["CLOCK", "MachineClock", "read_boot_id"]


def read_boot_id() -> str:
    """Return what tells this boot of the machine from all others; "" where nothing does."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        pass
    if sys.platform != "darwin":
        return ""
    import subprocess

    try:
        return subprocess.run(["sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""
