"""Directories in an unpacked image on which a job's own are mounted: charliecloud makes none in an image."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from monkey.errors import JobFailed
from monkey.untrusted_files import open_entry

#: Charliecloud mounts a directory of its own there, and makes what it needs in it.
_OWN = "/tmp"


def make_mount_points(image: str, paths: Iterable[str]) -> None:
    """Make directories of these paths in an image, which is hostile: no link in it is followed.

    Raises JobFailed where the image has something else there; OSError.
    """
    for path in paths:
        parts = path.strip("/").split("/")
        if f"/{parts[0]}" == _OWN:
            continue
        at = open_entry(image, step=True)
        try:
            for part in parts:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=at)
                at, above = _enter(part, at, path), at
                os.close(above)
        finally:
            os.close(at)


def _enter(name: str, at: int, path: str) -> int:
    try:
        return open_entry(name, at, step=True)
    except NotADirectoryError as exc:
        hint = "let the agent keep its state and cache elsewhere, or use podman"
        raise JobFailed(f"{path} cannot be mounted: its image has {name!r} there, no directory (hint: {hint})") from exc
