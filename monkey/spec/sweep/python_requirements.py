"""Reading a requirements file: a plain one of the project, for its text is stored with the sweep."""

from __future__ import annotations

from pathlib import Path

from monkey.spec.project_paths import locate, read_plain

#: Bytes of it at most.
MOST = 1_000_000


def plain_text(root: Path, name: str) -> str:
    """Return what a file of the project says. Raises OSError, and ValueError with why it is not read."""
    try:
        path = locate(root / name, root)
    except ValueError as error:
        raise ValueError(f"{error}, and its text would be stored with the sweep") from error
    raw = read_plain(path, MOST + 1)
    if len(raw) > MOST:
        raise ValueError(f"it has {path.stat().st_size:,} bytes, and at most {MOST:,} are taken")
    return raw.decode()
