# ruff: noqa: PTH102, PTH112, PTH208
# Paths are plain strings here, as those of workspaces are.
"""Directories for temporary files, one for each attempt: what a job that is killed leaves there goes with it.

They lie where the machine has temporary files, below one directory of the agent's. They do not lie in workspaces:
programs put sockets there, and the path of a socket may have about a hundred bytes. One that its job did not use
still has 0 as its time of change, and is handed to the next. To make one takes a tenth of what an agent does for a
short job.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from monkey.removal import remove_empty_directory, remove_tree
from monkey.untrusted_files import open_directory

#: The mode of a directory as it was made.
_UNUSED = stat.S_IFDIR | stat.S_IRWXU


class TemporaryDirectories:
    """The directories of an agent's attempts."""

    def __init__(self, state: Path) -> None:
        """Name the directory of the agent with this state; what an earlier agent left there is to be removed."""
        digest = hashlib.sha256(os.fsencode(state)).hexdigest()[:8]
        self._root = f"{tempfile.gettempdir()}/monkey-{digest}"
        self._used: set[str] = set()
        self._spare: list[str] = []
        self._count = 0
        #: Is there something that `empty` would remove?
        self.has_trash = os.path.lexists(self._root)

    def take(self) -> str:
        """Return an empty directory; "" where there can be none: then a job has the machine's."""
        while self._spare:
            path = self._spare.pop()
            if os.path.isdir(path):  # what cleans temporary files may have come
                return path
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                os.mkdir(self._root, stat.S_IRWXU)
            with self._hold() as root:
                while True:
                    self._count += 1
                    name = str(self._count)
                    self._used.add(name)
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, stat.S_IRWXU, dir_fd=root)
                        os.utime(name, ns=(0, 0), dir_fd=root)
                        return f"{self._root}/{name}"
                    self._used.discard(name)
        return ""

    def give(self, path: str, *, spoilt: bool = False) -> None:
        """Take a directory back; it may be "". One with something in it waits for `empty`.

        `spoilt`: its job may still write into it, so no other attempt gets it.
        """
        if not path:
            return
        if not spoilt and self._is_unused(path):
            self._spare.append(path)
            return
        name = path.rpartition("/")[2]
        try:
            with self._hold() as root:
                remove_empty_directory(name, root)
        except FileNotFoundError:
            pass
        except OSError:
            self.has_trash = True
        self._used.discard(name)

    @staticmethod
    def _is_unused(path: str) -> bool:
        try:
            status = os.lstat(path)
        except OSError:
            return False
        return status.st_mode == _UNUSED and status.st_mtime_ns == 0

    def empty(self) -> None:
        """Remove all that is of no attempt: slow, and to be called in another thread."""
        self.has_trash = False  # first, so that what comes meanwhile is seen the next time
        with contextlib.suppress(OSError), self._hold() as root:
            for name in set(os.listdir(root)) - self._used:
                remove_tree(name, root)

    def close(self) -> None:
        """Remove all of them; slow, and to be called in another thread."""
        self._used -= {path.rpartition("/")[2] for path in self._spare}
        self._spare.clear()
        self.empty()
        with contextlib.suppress(OSError):
            remove_empty_directory(self._root)

    @contextlib.contextmanager
    def _hold(self) -> Iterator[int]:
        """Hold the agent's directory. Raises OSError where it is a link, or another user's."""
        descriptor = open_directory(self._root)
        try:
            if os.fstat(descriptor).st_uid != os.geteuid():
                raise PermissionError(f"{self._root} is not ours")
            yield descriptor
        finally:
            os.close(descriptor)
