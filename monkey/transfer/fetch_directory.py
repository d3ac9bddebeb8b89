"""The directory that `monkey fetch` writes to: what it may write there, and what it wrote before.

A line of the manifest names a path and the SHA-256 of bytes that went there, before they do. So a crash leaves no file
that `fetch` would take for a user's, and several fetches may add lines at a time.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections import defaultdict
from pathlib import Path

from monkey.atomic_write import write_all, write_atomically
from monkey.errors import MonkeyError
from monkey.store.folded_names import fold_name

#: Marks a directory that `monkey fetch` made: it is no code, or each fetch would make all jobs stale.
FETCHED = ".monkey-fetched"
#: The manifest: it is in directories that were there, too, and is no code.
FETCHED_MANIFEST = ".monkey-fetched.jsonl"

#: Never written into: what is in these directories is obeyed by git, ssh or monkey.
_PROTECTED = frozenset((".git", ".monkey", ".ssh"))
_OWN = frozenset((FETCHED, FETCHED_MANIFEST))


class FetchDirectory:
    """A directory in which files are replaced only if `fetch` wrote their bytes, or `force` is set."""

    def __init__(self, root: Path, *, force: bool = False) -> None:
        """Make the directory if it is missing, and read its manifest. Raises MonkeyError, OSError."""
        self.root, self._force = root, force
        if name := find_protected_name(root.resolve().as_posix()):
            raise MonkeyError(f"`monkey fetch` writes nothing into {name}: {root}", hint="choose another directory: -o")
        if not root.exists():
            root.mkdir(parents=True)
            (root / FETCHED).write_text("Made by `monkey fetch`. What is here is no part of a job's code.\n")
        self._real = root.resolve()
        self._written: dict[str, set[str]] = defaultdict(set)
        self._read_manifest()

    def holds(self, path: str, digest: str) -> bool:
        """Tell whether a file with these bytes is at the path; a link to one is not."""
        return _hash_regular(self.root / path) == digest

    def find_obstacle(self, path: str) -> str | None:
        """Return why nothing may be written to the path, as words; None if it may be."""
        target = self.root / path
        parent = target.parent.resolve()
        if not parent.is_relative_to(self._real):
            return "a link leads out of the directory there: remove it, or use -o"
        if name := find_protected_name(path) or find_protected_name(parent.relative_to(self._real).as_posix()):
            return f"nothing is ever written into {name}"
        if not _OWN.isdisjoint(map(fold_name, path.split("/"))):
            return "`monkey fetch` keeps a file of its own by that name"
        try:
            mode = target.lstat().st_mode
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            return "a file is in the place of its directory"
        if stat.S_ISDIR(mode):
            return "a directory is in its place"
        if self._force or _hash_regular(target) in self._written[path]:
            return None
        return "another file is there, and `monkey fetch` did not write it: --force replaces it"

    def record(self, path: str, digest: str) -> None:
        """Note that a file with these bytes is about to be at the path. Raises OSError."""
        if digest in self._written[path]:
            return
        self._written[path].add(digest)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        manifest = os.open(self.root / FETCHED_MANIFEST, flags, 0o666)
        try:
            # The line end in front: the line before may have been cut short.
            write_all(manifest, f"\n{json.dumps([digest, path])}".encode())
        finally:
            os.close(manifest)

    def write(self, path: str, text: str) -> str | None:
        """Write a file of text unless it is there; return why it could not be. Raises OSError."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        if self.holds(path, digest):
            return None
        if (why := self.find_obstacle(path)) is None:
            self.record(path, digest)
            write_atomically(self.root / path, text)
        return why

    def _read_manifest(self) -> None:
        try:
            manifest = os.open(self.root / FETCHED_MANIFEST, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        with open(manifest, encoding="utf-8", errors="replace") as lines:  # noqa: PTH123 - from a descriptor
            for line in lines:
                try:
                    digest, path = json.loads(line)
                    self._written[str(path)].add(str(digest))
                except (ValueError, TypeError, RecursionError):
                    continue


def find_protected_name(path: str) -> str | None:
    """Return the directory that nothing is written into and that a '/'-separated path leads to, however it is spelt."""
    return next((folded for part in path.split("/") if (folded := fold_name(part)) in _PROTECTED), None)


def _hash_regular(path: Path) -> str | None:
    """Return the SHA-256 of a regular file, 64 hex; None for anything else, links too."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        # Neither waiting nor following: it may have become a pipe, or a link, since it was looked at.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(fd, "rb", buffering=0) as file:  # noqa: PTH123 - from a descriptor
        return hashlib.file_digest(file, "sha256").hexdigest()
