"""A machine boots, or is watched over: one text for both."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from monkey_stacks.boot.remote.boot_report import say_line
from monkey_stacks.boot.remote.dead_man_switch import watch_agent
from monkey_stacks.boot.remote.install import keep_watch, set_up_agent
from monkey_stacks.boot.remote.terminate import end_machine


def run_command(settings: Mapping[str, Any], kind: Callable[[Mapping[str, Any]], Any]) -> None:
    """Do what the command line says, on a machine of that `kind`; a boot that fails ends it."""
    os.umask(0o022)
    cloud = kind(settings)
    if sys.argv[1:] == ["watch"]:
        watch_agent(settings, cloud)
        return
    try:
        keep_watch(Path(sys.argv[0]).read_text())
        set_up_agent(settings, cloud)
    except Exception as exc:
        why = str(exc) or repr(exc)
        say_line(f"error: {why}")
        end_machine(cloud, settings, f"it cannot be set up: {why}", shrinks=True, failed=True)
