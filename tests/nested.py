"""Directories within directories, deeper than any path may be long."""

from __future__ import annotations

import os
from pathlib import Path


def nest(root: Path, depth: int) -> None:
    """Make `root`, and below it a chain of so many directories with a file in the last."""
    root.mkdir()
    here = os.open(root, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


#: The same, for a job: `python -c NEST DIRECTORY DEPTH`.
NEST = """
import os, sys
os.chdir(sys.argv[1])
for _ in range(int(sys.argv[2])):
    os.mkdir("d")
    os.chdir("d")
open("file", "w").close()
"""
