"""How a listing that knows whole seconds only can tell that an object was replaced.

SFTP shows of a file its size and two times in seconds, and heartbeats are replaced every second, with as many bytes.
So who replaces an object sets its time of last access, which nothing here reads, to a random number. It lies in the
future: then Linux, which notes the first read after a change (relatime), leaves it alone.
"""

from __future__ import annotations

import os
import secrets
import time

#: Seconds since 1970: the stamps' first and the first after them. Before 2038, where some file systems end.
FIRST, LIMIT = 2**31 - 2**27, 2**31


def make_stamp() -> int:
    """Return a time of last access for an object that replaces another."""
    return FIRST + secrets.randbelow(LIMIT - FIRST)


def extract_stamp(atime: int) -> int:
    """Return the stamp in a file's time of last access; 0 for none."""
    return atime if FIRST <= atime < LIMIT else 0


def stamp_file(fd: int) -> None:
    """Stamp the open file, so that clients by SSH see that it is a new one."""
    os.utime(fd, ns=(make_stamp() * 10**9, time.time_ns()))
