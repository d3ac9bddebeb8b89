"""Reading a requirements file: a plain one of the project, for its text is stored with the sweep."""

from __future__ import annotations

import stat
from pathlib import Path

#: Bytes of it at most.
MOST = 1_000_000


def plain_text(root: Path, name: str) -> str:
    """Return what a file of the project says. Raises OSError, and ValueError with why it is not read."""
    path = (root / name).resolve()
    if not path.is_relative_to(root.resolve()):
        raise ValueError("it is outside of the project, and its text would be stored with the sweep")
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is no regular file")
    if status.st_size > MOST:
        raise ValueError(f"it has {status.st_size:,} bytes, and at most {MOST:,} are taken")
    return path.read_text("utf-8")
