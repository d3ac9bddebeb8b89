"""The machine that the agent runs on: its clock and its identity."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from monkey.protocol.clock import CLOCK, MachineClock

__all__ = ["CLOCK", "MachineClock", "extend_file_limit", "read_boot_id"]

#: Number of files that an agent on macOS may have open: as many as its kernel lets any user ask for (OPEN_MAX).
_OPEN_FILES = 10_240


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


def extend_file_limit() -> None:
    """Let the agent have files open for all its jobs: macOS permits 256, which a hundred jobs at once need."""
    if sys.platform != "darwin":
        return
    import resource

    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # then some jobs fail, and say so
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(now, min(most, _OPEN_FILES)), most))
