"""The GPUs of this machine, as CUDA_VISIBLE_DEVICES names them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from shutil import which

#: Seconds that nvidia-smi may take: it is slow on a machine with many GPUs and no persistence daemon.
PATIENCE = 60


def gpus() -> tuple[str, ...]:
    """Return the GPUs that we may use: those of CUDA_VISIBLE_DEVICES where it is set, else all of the driver."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        names = [name.strip() for name in given.split(",")]
        # CUDA itself ends the list at the first that is none: "-1" hides all.
        until = next((i for i, name in enumerate(names) if not name or name.startswith("-")), len(names))
        return tuple(names[:until])
    program = which("nvidia-smi")
    if program is None or not (Path("/proc/driver/nvidia").exists() or Path("/dev/dxg").exists()):
        return ()
    try:
        run = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=PATIENCE, errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return parse(run.stdout) if run.returncode == 0 else ()


def parse(listing: str) -> tuple[str, ...]:
    """Read `nvidia-smi -L`. A GPU that is split into instances (MIG) can only be used by those."""
    found: list[str] = []
    for line in listing.splitlines():
        match = re.search(r"\(UUID: ((GPU|MIG)-[^)\s]+)\)", line)
        if match is None:
            continue
        if match[2] == "MIG" and found and found[-1].startswith("GPU-"):
            found.pop()
        found.append(match[1])
    return tuple(found)
