"""The earlier lives of an agent in one state directory: their claims need no waiting for, since nothing of them runs.

A list of its own, and not the agent's name: two machines may bear one name, or be copies of each other.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

#: Lives that are remembered; what an older one left has long been taken over.
_REMEMBERED_LIVES = 500


def record_life(directory: Path, agent: str) -> frozenset[str]:
    """Write down that `agent` ("fleet/name/boot") begins, and return those that began here before.

    The caller holds the directory's lock and has ended what they left. Durable before it returns: a life that is not
    written down would be waited for. Raises OSError.
    """
    path = directory / "lives"
    before: list[str] = []
    with contextlib.suppress(FileNotFoundError):
        before = path.read_text(errors="replace").splitlines()[-_REMEMBERED_LIVES:]
    aside = path.with_suffix(".new")
    with aside.open("w") as file:
        file.write("".join(f"{life}\n" for life in [*before, agent]))
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
    return frozenset(before)
