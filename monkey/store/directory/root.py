# ruff: noqa: PTH112, PTH116, PTH120
# Paths are plain strings here: pathlib costs as much as the system calls.
"""The root directory of a store: whether it is still there, and what its errors mean.

A root can vanish at any moment (renamed, unmounted, an empty mount point in its place) and come back. No descriptor is
held between operations, or it could not be unmounted. Each operation opens the root for itself (`open_root.py`). One
that writes sees `format` there first, with the store's id: nothing is ever created in the wrong place.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat

from monkey.errors import (
    MAKE_ROOM,
    StoreError,
    StoreForbidden,
    StoreLinked,
    StoreMissing,
    StoreRefused,
    StoreReplaced,
    StoreUnavailable,
)
from monkey.store.directory.open_root import OpenRoot
from monkey.store.format import FORMAT, decode_format
from monkey.store.keys import check_key, shorten_key

#: Errors that stay until a person repairs their cause: what they mean, and what to do.
_REFUSALS = {
    errno.EACCES: (
        "permission denied",
        "give this user rights to read and write there; of a group's directory, `monkey doctor` tells more",
    ),
    errno.EPERM: ("not permitted", "the file system must know hard links, and this user must be allowed to write"),
    errno.EROFS: ("the file system is read-only", "mount it for writing"),
    errno.ENOSPC: ("no space left on the device", MAKE_ROOM),
    errno.EDQUOT: ("the disk quota is used up", f"raise the quota, or {MAKE_ROOM}"),
    errno.EFBIG: ("the file is too large for this file system", None),
    errno.ENAMETOOLONG: ("the name is too long for this file system", "use shorter names"),
    errno.EILSEQ: ("the name is not one that this file system can hold", "use plain names"),
    errno.ENOTDIR: ("a part of the key is an object, not a directory", None),
    errno.EISDIR: ("the key is a directory: other keys lie below it", None),
    errno.EMLINK: ("too many links or subdirectories in one directory", None),
    errno.EXDEV: ("the store spans several file systems", "keep all of it on one"),
    errno.EOPNOTSUPP: ("the file system cannot link files", "use one that can (most can; FAT cannot)"),
    errno.ENOSYS: ("the file system cannot link files", "use one that can (most can; FAT cannot)"),
}

#: Flags to open objects for reading, without waiting: a pipe in the place of an object must not stop the reader.
READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK

_Seen = tuple[int, int, int]


class DirectoryRoot:
    """A store's root directory."""

    def __init__(self, root: str, store_id: str | None) -> None:
        """Expect the store `store_id` in `root`; None for a store in creation, which has no `format` yet."""
        self.root = root
        self._id = store_id
        self._slash = root.rstrip("/") + "/"
        self._format = self._slash + FORMAT if store_id else self._slash + "."
        self._seen: _Seen | None = None
        self._temps = os.urandom(6).hex()
        self._count = itertools.count()

    def path(self, key: str) -> str:
        """Return the path of the object `key`. Raises ValueError where it is no key."""
        return self._slash + check_key(key)

    def below(self, prefix: str) -> str:
        """Return the path of the directory `prefix` ('' for the root), which the caller has checked."""
        return self._slash + prefix

    def temp(self) -> str:
        """Return an unused name in the directory of files in writing, where no listing looks."""
        return f"{self._temps}.{next(self._count)}"

    def enter(self, *, check: bool = True) -> OpenRoot:
        """Return the root, open: to write in it, `check` that it is our store. Raises StoreMissing, StoreError."""
        try:
            inside = OpenRoot(self.root)
        except OSError as exc:
            raise self._gone(exc) from exc
        try:
            if check:
                self._look(inside.fd)
        except BaseException:
            os.close(inside.fd)
            raise
        return inside

    def remove_aside(self, name: str) -> None:
        """Remove a file aside, if the store is there."""
        with contextlib.suppress(StoreError), self.enter(check=False) as inside:
            inside.remove_aside(name)

    def check(self) -> None:
        """Raise StoreMissing unless our store is there, as far as one look at `format` shows."""
        try:
            found = os.stat(self._format)
        except OSError as exc:
            raise self._gone(exc) from exc
        if _identity(found) != self._seen:
            self._look(None)

    def open_ancestors(self, path: str) -> None:
        """Open the directories above `path`, below the one that is known to be there; a missing one is no error.

        A client of NFS then asks for their attributes, and forgets what it had found missing in those that changed.
        """
        unseen, directory = [], os.path.dirname(path)
        while not _open_once(directory) and len(directory) > len(self.root):
            unseen.append(directory)
            directory = os.path.dirname(directory)
        while unseen and _open_once(unseen.pop()):
            pass

    def open_missing(self, directory: str) -> None:
        """Do so for a directory that seems to be missing."""
        if not os.path.isdir(directory):
            self.open_ancestors(f"{directory}/.")

    def _look(self, root: int | None) -> None:
        """Check our `format`, below the descriptor `root` if given; read it if it is not the file seen before.

        Raises StoreError.
        """
        name = self._format if root is None else self._format[len(self._slash) :]
        try:
            found = os.stat(name, dir_fd=root)
            if _identity(found) == self._seen:
                return
            if self._id is None:
                if self._seen is not None:
                    raise StoreMissing(f"{self.root} was replaced while a store was begun in it")
            else:
                self._read(name, root)
        except OSError as exc:
            raise self._gone(exc) from exc
        self._seen = _identity(found)

    def _read(self, name: str, root: int | None) -> None:
        fd = os.open(name, READ | os.O_NOFOLLOW, dir_fd=root)
        try:
            found = decode_format(os.read(fd, 65536), self.root)
        finally:
            os.close(fd)
        if found.id != self._id:
            raise StoreReplaced(
                f"another store is in {self.root}: expected {self._id}, found {found.id}",
                hint="bring the store that was there back",
            )

    def _gone(self, exc: OSError) -> StoreError:
        if exc.errno not in (errno.ENOENT, errno.ENOTDIR):
            return self.translate(exc)
        missing = explain_missing_store(self.root)
        missing.removed = self._seen is not None and self._seen[0] == _find_device(self.root)
        return missing

    def translate(self, exc: OSError, key: str = "") -> StoreError:
        """Return the error to raise for `exc`, met while working on `key`; StoreMissing if the store has vanished."""
        if exc.errno in (errno.ENOENT, errno.ENOTDIR):
            try:
                self.check()
            except StoreError as gone:
                return gone
        return translate_os_error(exc, self.root, key)


def _find_device(path: str) -> int:
    """Return the device of the nearest file or directory that is there, from `path` upward."""
    try:
        return os.stat(path).st_dev
    except OSError:
        return _find_device(os.path.dirname(path))


def _open_once(directory: str) -> bool:
    """Open and close a directory; return whether it is there."""
    try:
        os.close(os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def translate_os_error(exc: OSError, root: str, key: str = "") -> StoreError:
    """Return the error to raise for `exc`, met in the store at `root` while working on `key`."""
    what = f"the store {shorten_key(root)}" + (f", key {shorten_key(key)!r}" if key else "")
    if exc.errno == errno.ELOOP:
        return StoreLinked(what, shorten_key(os.fspath(exc.filename or root)))
    if exc.errno in _REFUSALS:
        meaning, hint = _REFUSALS[exc.errno]
        refusal = StoreForbidden if exc.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else StoreRefused
        return refusal(f"{what}: {meaning}", hint=hint)
    return StoreUnavailable(f"{what}: {exc.strerror or exc}")


def explain_missing_store(root: str) -> StoreMissing:
    """Return the error for a path where a store was expected, which says what is there instead."""
    hint = "bring it back (is it mounted? was it renamed?), or name another with 'store:' in monkey.yaml"
    if not os.path.lexists(root):
        return StoreMissing(f"no store at {root}: it does not exist", hint=hint)
    if not os.path.isdir(root):
        return StoreMissing(f"no store at {root}: it is not a directory", hint=hint)
    return StoreMissing(f"no store at {root}: the directory has no {FORMAT!r} in it", hint=hint)


def _identity(found: os.stat_result) -> _Seen:
    # A directory's mtime changes with its entries: while there is no `format` yet, the root is known by its inode.
    return found.st_dev, found.st_ino, 0 if stat.S_ISDIR(found.st_mode) else found.st_mtime_ns
