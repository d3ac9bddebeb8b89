"""Reading files where a job can put anything."""

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
