"""A command whose end is the end of all that it started, whichever way it ends: kubelets, containers, hosts, mounts."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Sequence

#: The first process of a space of process numbers: the kernel ends all others with it, and it goes with its parent.
SPACE = ("setpriv", "--pdeathsig", "KILL", "unshare", "--fork", "--pid", "--mount-proc", "--kill-child")
#: It has to collect the ends of processes whose parents are gone, which a shell does.
_FIRST = ("sh", "-c", '"$@"; exit', "sh")


def contain(command: Sequence[str]) -> list[str]:
    """Return the command that runs so; it is unchanged where the machine does not permit it."""
    return [*SPACE, *_FIRST, *command] if is_possible() else list(command)


@functools.cache
def is_possible() -> bool:
    """Say whether the machine permits it."""
    try:
        return subprocess.run([*SPACE, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:  # a Mac
        return False
