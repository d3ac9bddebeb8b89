"""The one way into a store's directory: from a descriptor of its root, name by name, and through no link.

Everybody who writes to the store can put a link in place of one of its directories, at any moment. A path that is
looked at first and used later would then lead out: to files of the user's that were never the store's. The root itself
may be a link, and so may what is above it: only the user puts these there.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress

from monkey.removal import remove_file
from monkey.store.content.hash_worker import make_directory
from monkey.store.keys import RESERVED

#: Opens a directory on the way, which need not be readable. On NFS, O_PATH asks the server for nothing.
_STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", 0)
#: What systems answer where a link, or a file, stands in place of a directory.
_NO_DIRECTORY = frozenset((errno.ELOOP, errno.EMLINK, errno.ENOTDIR))


class OpenRoot:
    """A store's root, open for one operation, or for one batch of them. For one thread."""

    def __init__(self, path: str) -> None:
        """Open the root at `path`. Raises OSError."""
        self.fd = os.open(path, _STEP)
        #: The directory that was reached last: the next key mostly lies in it, too.
        self._directory = ""
        self._reached = self.fd
        self._aside = -1

    def __enter__(self) -> OpenRoot:
        return self

    def __exit__(self, *_: object) -> None:
        self.forget()
        if self._aside >= 0:
            os.close(self._aside)
        os.close(self.fd)

    def forget(self) -> None:
        """Look for the next directory from the root: one that was reached may be gone, and made again."""
        if self._reached != self.fd:
            os.close(self._reached)
        self._directory = ""
        self._reached = self.fd

    def reach(self, path: str, *, make: bool = False) -> tuple[int, str]:
        """Return a descriptor of the directory in which `path` lies below the root, and the name there.

        The descriptor is valid until the next call. `make`: missing directories are made. Raises OSError: with ELOOP,
        where a link is in the way, whose path below the root is the error's file name.
        """
        directory, _, name = path.rpartition("/")
        if directory != self._directory:
            self.forget()
            self._reached = self._walk(directory.split("/") if directory else [], make)
            self._directory = directory
        return self._reached, name

    def open(self, path: str, flags: int) -> int:
        """Return a descriptor of what is at `path` below the root. Raises OSError as `reach`, also for a link there."""
        at, name = self.reach(path)
        try:
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=at)
        except OSError as exc:
            raise _name_link(exc, at, name, path) from exc

    @property
    def aside(self) -> int:
        """The directory of files in writing, which is made where it is missing; valid as long as this is."""
        if self._aside < 0:
            self._aside = self._walk([RESERVED], make=True)
        return self._aside

    def remove_aside(self, name: str) -> None:
        """Remove a file aside; whatever hinders that, it only takes space."""
        with suppress(OSError):
            remove_file(name, self.find_aside())

    def find_aside(self) -> int:
        """Return the directory of files in writing as `aside`, but make none: this may not be our store."""
        if self._aside < 0:
            self._aside = self._walk([RESERVED], make=False)
        return self._aside

    def _walk(self, names: Sequence[str], make: bool) -> int:
        at = self.fd
        for count, name in enumerate(names, 1):
            try:
                inner = _step_into(name, at, make)
            except OSError as exc:
                raise _name_link(exc, at, name, "/".join(names[:count])) from exc
            finally:
                if at != self.fd:
                    os.close(at)
            at = inner
        return at


def _step_into(name: str, at: int, make: bool) -> int:
    try:
        return os.open(name, _STEP | os.O_NOFOLLOW, dir_fd=at)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # another was faster
        make_directory(name, at)
    return os.open(name, _STEP | os.O_NOFOLLOW, dir_fd=at)


def _name_link(exc: OSError, at: int, name: str, path: str) -> OSError:
    """Return the error to raise: one that names the link, where one is what is in the way."""
    if exc.errno in _NO_DIRECTORY:
        with suppress(OSError):
            if stat.S_ISLNK(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
                return OSError(errno.ELOOP, "is a link", path)
    return exc
