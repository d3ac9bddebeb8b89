# ruff: noqa: PTH112, PTH208
# Paths are plain strings here: supervisors start without pathlib.
"""What a process keeps from the other programs of its user: its memory, variables and descriptors."""

from __future__ import annotations

import os
from collections.abc import Mapping

from monkey.processes.process_tree import ask_kernel

#: PR_SET_DUMPABLE of prctl(2). The kernel sets it again when a process starts another program.
_SET_DUMPABLE = 4

#: Variables that helpers of ours need: to find files, programs and libraries, for the language, and for certificates.
_NEEDED = frozenset(
    (
        *("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        *("LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"),
        *("PYTHONHOME", "PYTHONPATH", "PYTHONUTF8", "PYTHONCOERCECLOCALE"),
    )
)
#: The last three are of drivers of GPUs.
_NEEDED_PREFIXES = ("LC_", "XDG_", "CUDA_", "NVIDIA_", "NVML_")


def seal_memory() -> None:
    """Let no other process of this user read our memory, or the variables that we began with (Linux).

    Root still can. Programs that we start can be read as before.
    """
    ask_kernel(_SET_DUMPABLE, 0)


def seal_descriptors() -> None:
    """Let programs that we start inherit the standard streams alone (Linux).

    Python hands on nothing else by itself. But ctypes has libffi, which before 3.5.2 opens a file that is handed on.
    """
    directory = "/proc/self/fd"
    if not os.path.isdir(directory):
        return
    for name in os.listdir(directory):
        try:
            if int(name) > 2:
                os.set_inheritable(int(name), False)
        except OSError:
            continue  # the listing's own


def select_needed_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a helper of ours gets: secrets may be among the others."""
    return {name: value for name, value in environment.items() if name in _NEEDED or name.startswith(_NEEDED_PREFIXES)}
