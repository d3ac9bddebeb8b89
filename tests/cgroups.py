"""A control group for each host of a lab: all would share one, and the systemd of one met the processes of others."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

#: Where hierarchies of groups are mounted: systemd's own, and the unified one beside it or alone.
ROOTS = ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup")
#: Seconds after which a group is left behind.
PATIENCE = 10.0
_ENTER = """
name=$1; shift
for root in {roots}; do
    if [ -w $root/cgroup.procs ]; then mkdir -p $root/$name && echo $$ > $root/$name/cgroup.procs; fi
done
exec "$@"
"""


def in_group(name: str, command: list[str]) -> list[str]:
    """Return the command that runs in a group of its own."""
    return ["sh", "-c", _ENTER.format(roots=" ".join(ROOTS)), "sh", name, *command]


def remove_group(name: str) -> None:
    """Remove a group whose processes were killed, with those below it: as soon as they are gone."""
    deadline = time.monotonic() + PATIENCE
    while _left(name) and time.monotonic() < deadline:
        time.sleep(0.02)


def remove_groups(prefix: str) -> None:
    """Remove all groups whose names begin so."""
    for name in {path.name for root in ROOTS for path in Path(root).glob(f"{prefix}*")}:
        remove_group(name)


def _left(name: str) -> bool:
    for root in ROOTS:
        for directory, _, _ in os.walk(f"{root}/{name}", topdown=False):
            with contextlib.suppress(OSError):
                Path(directory).rmdir()
    return any(Path(root, name).exists() for root in ROOTS)
