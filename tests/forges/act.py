"""One run of act: it streams what the job prints, and can be killed with all that it started."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

#: Seconds within which a job must end.
LIMIT = 300


def run_act(
    words: Sequence[str], environ: Mapping[str, str], at: Path, kills: Callable[[str], bool]
) -> tuple[int, list[str], bool]:
    """Run it, in whose environment the directory `at` is named; return its exit code, what it printed, and a verdict.

    All its processes are killed at the first row of which `kills` is true: that is the verdict.
    """
    process = subprocess.Popen(
        words,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    limit = threading.Timer(LIMIT, kill_tree, [at])
    limit.start()
    rows, killed = [], False
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            rows.append(_read_row(line))
            if not killed and kills(rows[-1]):
                killed = True
                kill_tree(at)
    limit.cancel()
    return process.returncode, rows, killed


def kill_tree(at: Path) -> None:
    """Kill -9 all processes whose environment names something in this directory, and their children, until none is."""
    while pids := _find_tree(f"{at}/".encode()):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _find_tree(mark: bytes) -> set[int]:
    parents, found = {}, set()
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            pid, (state, parent) = int(directory.name), (directory / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z" and pid != os.getpid():
                parents[pid] = int(parent)
                found |= {pid} if mark in (directory / "environ").read_bytes() else set()
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _read_row(line: str) -> str:
    try:
        return str(json.loads(line)["msg"]).rstrip("\n")
    except (ValueError, KeyError, TypeError):
        return line.rstrip("\n")
