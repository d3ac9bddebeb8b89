# ruff: noqa: PTH101, PTH104
# Paths are plain strings here, as those of workspaces are.
"""Files and directories in which a job can put anything: read and moved without following its links."""

from __future__ import annotations

import errno
import os
import stat


def stat_directory(path: str) -> os.stat_result:
    """Return the status of a directory that a job can replace. Raises OSError where it is a link, or no directory.

    So it does where the directory above is one: a job can replace the whole of its workspace.
    """
    for each in (path.rpartition("/")[0], path):
        status = os.lstat(each)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "is a link, or no directory", each)
    return status


def is_directory(path: str) -> bool:
    """Say whether `stat_directory` finds one."""
    try:
        stat_directory(path)
    except OSError:
        return False
    return True


def open_regular(path: str, flags: int) -> int:
    """Return a descriptor of a file where a job can put anything. Raises OSError where it is no regular file.

    Never waits (for the other end of a pipe), never follows a link, nor one in place of the two directories above.
    """
    stat_directory(path.rpartition("/")[0])
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
