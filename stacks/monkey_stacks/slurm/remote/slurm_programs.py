"""Slurm's programs on this machine: found, run, and their answers read."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from typing import Any

#: Seconds that a program may take: a busy controller answers late.
_PATIENCE_SECONDS = 60
#: Where clusters keep Slurm that is not on the PATH of every login.
_PLACES = ("/usr/bin", "/usr/local/bin", "/opt/slurm/bin", "/usr/local/slurm/bin", "/cm/shared/apps/slurm/current/bin")
#: One line for each pilot: its id, its own job, its state, why it waits, its node, the time that it has left.
_FORMAT = "%i|%A|%T|%r|%N|%L"


class SlurmRefused(Exception):
    """A program of Slurm failed: (program, what it said)."""


class SlurmMissing(Exception):
    """There is no program of Slurm here."""


@cache
def find_path() -> str:
    """Return the PATH on which sbatch is: ours, that of a login shell, or ours and a usual place.

    Raises SlurmMissing.
    """
    ours = os.environ.get("PATH", os.defpath)
    for path in (ours, *(f"{ours}:{place}" for place in _PLACES)):
        if shutil.which("sbatch", path=path):
            return path
    try:
        command = ["bash", "-lc", 'printf "\\n%s" "$PATH"']
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        raise SlurmMissing from None
    path = run.stdout.decode(errors="replace").rpartition("\n")[2]
    if not shutil.which("sbatch", path=path):
        raise SlurmMissing
    return path


def run_program(*words: str, given: str = "") -> str:
    """Run a program of Slurm; return what it said on both outputs. Raises SlurmRefused, SlurmMissing."""
    path = find_path()
    program = shutil.which(words[0], path=path)
    if program is None:
        raise SlurmRefused(words[0], "it is not here, though sbatch is")
    # What the user's shell sets for his own jobs is none of the pilots'.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SBATCH_", "SQUEUE_", "SCANCEL"))}
    try:
        run = subprocess.run(
            [program, *words[1:]],
            input=given.encode(),
            capture_output=True,
            timeout=_PATIENCE_SECONDS,
            env={**kept, "PATH": path, "LC_ALL": "C"},
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        raise SlurmRefused(words[0], f"it did not answer for {_PATIENCE_SECONDS} s") from None
    said = run.stdout.decode(errors="replace"), run.stderr.decode(errors="replace")
    if run.returncode:
        raise SlurmRefused(
            words[0], "\n".join(filter(None, map(str.strip, reversed(said)))) or f"exit {run.returncode}"
        )
    return said[0] if words[0] == "squeue" else f"{said[1]}{said[0]}"


def list_queue(label: str) -> list[dict[str, Any]]:
    """Return our jobs of this name, each pilot of an array for itself. Raises SlurmRefused, SlurmMissing."""
    said = run_program("squeue", "-h", "-r", "-u", str(os.getuid()), "-n", label, "-o", _FORMAT)
    names = ("id", "job", "state", "reason", "node", "left")
    rows = [line.split("|") for line in said.splitlines()]
    return [dict(zip(names, row, strict=True)) for row in rows if len(row) == len(names)]
