"""The earlier lives of an owner of claims in one directory: their claims are taken over at once, for they have ended.

The list is its own file, and not the owner's name: two machines may have one name, or be copies of each other.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from monkey.atomic_write import write_atomically

#: Lives that are remembered; what an older one left has long been taken over.
_REMEMBERED_LIVES = 500


def record_life(directory: Path, name: str) -> frozenset[str]:
    """Record that the life `name` ("fleet/name/boot" of an agent) begins; return those that began here before.

    The caller holds the directory's lock, and has ended what they left. The record is on disk when this returns; a
    life that a loss of power erases all the same is waited for. Raises OSError.
    """
    path = directory / "lives"
    before: list[str] = []
    with contextlib.suppress(FileNotFoundError):
        before = path.read_text(errors="replace").splitlines()[-_REMEMBERED_LIVES:]
    write_atomically(path, "".join(f"{life}\n" for life in [*before, name]), durable=True)
    return frozenset(before)
