"""The files of one source, searched again at each look: writers choose their names, and may write them again."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from monkey.transfer.globs import GlobPatterns
from monkey.untrusted_files import UntrustedFile, walk_tree

#: Part of the name of each event file.
_EVENTS = "tfevents"
#: Files of one source at most, and names that are looked at below one directory.
_MOST_FILES, _MOST_NAMES = 1_000, 20_000
#: Seconds between searches, at least; and how many times as long as a search took.
_SEARCH_SECONDS, _SEARCH_SHARE = 1.0, 20
#: Bytes at the beginning, and before the place that was reached, by which a file is known.
_KNOWN = 512


class FoundFile:
    """A file that grows, or is written again: then it is read from its beginning, by a new reader."""

    def __init__(self, root: str, path: str, reader: Any, renew: Callable[[], Any] | None = None) -> None:
        """Read the file at the relative `path` below `root` by `reader`; `renew` makes another."""
        self._file, self.path, self.reader, self._renew = UntrustedFile(root, path), path, reader, renew
        #: Its name among the files of all roots.
        self.name = f"{root.rpartition('/')[2]}/{path}"
        self._at, self._begin, self._end = 0, b"", b""
        self._state: tuple[int, int] | None = None
        #: Is it read no further?
        self.given_up = False

    def read(self, most: int) -> Iterator[bytes]:
        """Yield what came since, in pieces of up to `most` bytes."""
        if self.given_up:
            return
        try:
            fd = self._file.open()
        except OSError:
            return  # it is not there, or no file
        try:
            status = os.fstat(fd)
            if self._state == (status.st_mtime_ns, status.st_size):
                return
            if self._renew is not None and not self._continues(fd, status.st_size):
                self.reader, self._at, self._begin, self._end = self._renew(), 0, b"", b""
            while data := os.pread(fd, most, self._at):
                self._begin = (self._begin + data)[:_KNOWN] if len(self._begin) < _KNOWN else self._begin
                self._end = (self._end + data)[-_KNOWN:]
                self._at += len(data)
                yield data
            self._state = status.st_mtime_ns, status.st_size
        except OSError:
            return  # a disk that does not answer: the next look tries again
        finally:
            os.close(fd)

    def _continues(self, fd: int, size: int) -> bool:
        """Is what was read still there?"""
        if size < self._at:
            return False
        begin, end = len(self._begin), len(self._end)
        return os.pread(fd, begin, 0) == self._begin and os.pread(fd, end, self._at - end) == self._end


class SourceFiles:
    """The files that one source names: a path or a glob, below each of the job's directories."""

    def __init__(self, roots: list[str], pattern: str, *, events: bool = False) -> None:
        """Search below `roots`; `events`: for event files in the directories that `pattern` names, "" for all."""
        self._roots, self._events = roots, events
        self._fixed = "" if events or set(pattern) & set("*?[") else pattern
        self._globs = GlobPatterns([pattern or "**"])
        self._found: dict[tuple[str, str], FoundFile] = {}
        self._due = 0.0

    def look(self, make: Callable[[], Any], *, over: bool = False) -> list[FoundFile]:
        """Return the files, by their names: these have times in them. `make` makes a reader."""
        if over or time.monotonic() >= self._due:
            started = time.monotonic()
            for root in self._roots:
                for path in [self._fixed] if self._fixed else self._walk(root):
                    if len(self._found) < _MOST_FILES and (root, path) not in self._found:
                        self._found[root, path] = FoundFile(root, path, make(), make)
            took = time.monotonic() - started
            self._due = time.monotonic() + max(_SEARCH_SECONDS, took * _SEARCH_SHARE)
        return sorted(self._found.values(), key=lambda file: (file.path.rpartition("/")[2], file.path))

    def _walk(self, root: str) -> Iterator[str]:
        seen = 0
        with contextlib.suppress(OSError):
            for directory, _, names in walk_tree(root):
                below = directory.removeprefix(root).lstrip("/")
                for name in names:
                    path = f"{below}/{name}".lstrip("/")
                    if (not self._events or _EVENTS in name) and self._globs.match(path):
                        yield path
                seen += len(names)
                if seen > _MOST_NAMES:
                    return
