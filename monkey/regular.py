# ruff: noqa: PTH101, PTH104
# Paths are plain strings here, as those of workspaces are.
"""Files and directories in which a job can put anything: read, and moved, all the same."""

from __future__ import annotations

import errno
import os
import stat


def open_regular(path: str, flags: int) -> int:
    """Return a descriptor of a file where a job can put anything. Raises OSError where it is no regular file.

    Never waits (for the other end of a pipe), never follows a link.
    """
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW, 0o644)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "is no regular file", path)


def move_directory(path: str, to: str) -> None:
    """Rename a directory, whatever rights a job left it. Raises OSError."""
    try:
        os.rename(path, to)
    except PermissionError:  # only who may write to a directory may move it
        os.chmod(path, stat.S_IRWXU)
        os.rename(path, to)
