"""The mounts of a machine of a cloud, by root: tried again until all are there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from monkey.store.directory.network_mount import list_mounted_sources

#: Seconds that a mount may take, and between tries.
_MOUNT_SECONDS, _PAUSE_SECONDS = 120, 20.0
#: Where root finds programs on a machine of a cloud.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: A process that serves a mount must outlive the one that mounts.
MOUNT_UNIT = """\
[Unit]
Description=mounts what jobs of monkey need
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={python} -I -S {bundle} --mounts {mounts}
Restart=on-failure
RestartSec=20
KillMode=process
RemainAfterExit=yes
StandardOutput=append:{log}
StandardError=inherit
"""


def keep_mounting(file: Path, pause: Callable[[float], None] = time.sleep) -> None:
    """Mount what `file` lists, path, source and command of each, again and again until all is mounted.

    `pause` sleeps seconds between tries. Raises OSError where the file cannot be read.
    """
    steps = json.loads(file.read_bytes())
    while make_mounts(steps):
        pause(_PAUSE_SECONDS)


def make_mounts(mounts: Sequence[Sequence[str]]) -> list[str]:
    """Mount what is not mounted yet: path, export of NFS, or command. Return the paths that are still not mounted."""
    for path, source, command in mounts:
        if path in (list_mounted_sources() or {}):
            continue
        argv = ["/bin/sh", "-c", command] if command else ["mount", "-t", "nfs", source, path]
        try:
            if os.path.realpath(path) != path:
                raise OSError("a link is in its path")
            Path(path).mkdir(parents=True, exist_ok=True)
            subprocess.run(
                argv, stdin=subprocess.DEVNULL, env={"PATH": SYSTEM_PATH}, timeout=_MOUNT_SECONDS, check=True
            )
        except (OSError, subprocess.SubprocessError) as exc:
            print(f"error: {path} could not be mounted: {exc}", file=sys.stderr, flush=True)
    there = list_mounted_sources() or {}
    return [path for path, _, _ in mounts if path not in there]
