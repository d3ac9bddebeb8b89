# Paths are plain strings here: pathlib costs as much as the system calls.
"""A directory that a job writes to, as one look sees it; and which of it the job is not writing at the moment."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import stat
import sys
from dataclasses import dataclass, field
from typing import NamedTuple

from monkey.store.keys import is_encodable
from monkey.transfer.code.code_manifest import MAX_TREE_DEPTH
from monkey.untrusted_files import HeldDirectory

#: Names under which programs write what they rename when it is whole. While such a file is being written nobody waits
#: for it: it is no part of the checkpoint yet.
_ASIDE = re.compile(
    r"(.*[._-])?te?mp([._-]\w*)?"  # state.tmp, state.tmp.1234, step-7.checkpoint-tmp-99
    r"|[._-]?te?mp[._-].*|tmp\w{6,}"  # .tmp-state, tmp-step-7, tmpx1y2z3
    r"|(.*[._-])?(part|partial|incomplete)|[._-]?(partial|incomplete)[._-].*"
    r"|.*\.new|.*~|\.\#.*"
)


class FileState(NamedTuple):
    """What tells one state of a file from another; `mtime` in nanoseconds."""

    inode: int
    size: int
    mtime: int
    mode: int


@dataclass(frozen=True)
class DirectoryScan:
    """Everything below a directory; paths are relative, and two trees are equal if nothing seems to have changed."""

    files: dict[str, FileState] = field(default_factory=dict)
    directories: frozenset[str] = frozenset()
    #: Path to target, of links that stay below the directory.
    links: dict[str, str] = field(default_factory=dict)
    #: Path to why it is left out.
    odd: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(seen.size for seen in self.files.values())


def scan_directory(held: HeldDirectory) -> DirectoryScan:
    """Return what is in a directory now. Raises OSError where it cannot be read."""
    tree, directories = DirectoryScan(), set()
    waiting = [""]
    while waiting:
        below = waiting.pop()
        try:
            at = held.descend(below)
            with os.scandir(at) as found:
                entries = list(found)
        except (FileNotFoundError, NotADirectoryError):
            continue  # removed, or replaced, since it was seen
        for entry in entries:
            path = f"{below}/{entry.name}" if below else entry.name
            with contextlib.suppress(FileNotFoundError):
                if _add(tree, path, entry, at):
                    directories.add(path)
                    waiting.append(path)
    return DirectoryScan(tree.files, frozenset(directories), tree.links, tree.odd)


def scan_path(path: str) -> DirectoryScan:
    """Return what is in the directory at `path` now; nothing where it is missing. Raises OSError as `HeldDirectory`."""
    try:
        with HeldDirectory(path) as held:
            return scan_directory(held)
    except FileNotFoundError:
        return DirectoryScan()


def _add(tree: DirectoryScan, path: str, entry: os.DirEntry[str], at: int) -> bool:
    """Add an entry of the directory `at`; True for a directory, to be looked into."""
    status = entry.stat(follow_symlinks=False)
    if not is_encodable(path):
        tree.odd[path] = "its name is not UTF-8"
    elif stat.S_ISDIR(status.st_mode):
        if path.count("/") < MAX_TREE_DEPTH:
            return True
        tree.odd[path] = "it lies too deep"
    elif stat.S_ISREG(status.st_mode):
        tree.files[path] = FileState(status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode & 0o777)
    elif stat.S_ISLNK(status.st_mode) and is_inner(target := os.readlink(entry.name, dir_fd=at)):
        tree.links[path] = target
    else:
        link = stat.S_ISLNK(status.st_mode)
        tree.odd[path] = "it is a link that leads elsewhere" if link else "it is no regular file"
    return False


def is_inner(target: str) -> bool:
    """Does a link's target lead nowhere but down?"""
    return {"", ".", ".."}.isdisjoint(target.split("/")) and "\0" not in target and is_encodable(target)


def is_written(name: str, at: int | None = None) -> bool:
    """Has anybody the file in the directory `at` open for writing, or mapped so? False where the system cannot tell.

    The kernel grants a read lease only on a file that no process writes. It is given back at once: a process that
    opened the file meanwhile waited for microseconds, and the kernel's signal for it is ignored.
    """
    if sys.platform != "linux":
        return False
    fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
    try:
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without leases, or somebody else's file
    finally:
        os.close(fd)
    return False


def find_settled(held: HeldDirectory, before: DirectoryScan, now: DirectoryScan) -> DirectoryScan | None:
    """Return what of `now` is whole, where a look `before` saw the same; None where a file is being written.

    Files that have a name for half-written ones and are being written are left out, and nothing waits for them.
    Raises PermissionError for a file that cannot be read.
    """
    loose = {path for path, seen in now.files.items() if before.files.get(path) != seen}
    for path in now.files:
        if path in loose:
            continue
        try:
            at, name = held.reach(path)
            if is_written(name, at):
                loose.add(path)
        except PermissionError:
            raise  # nothing could be saved, ever
        except OSError:  # removed
            loose.add(path)
    gone = before.files.keys() - now.files.keys()
    if any(not is_aside(path) for path in loose | gone) or before.links != now.links:
        return None
    directories = frozenset(filter(lambda path: not is_aside(path), now.directories))
    if directories != frozenset(path for path in before.directories if not is_aside(path)):
        return None
    files = {path: seen for path, seen in now.files.items() if path not in loose}
    kept = {path for path in now.directories if any(file.startswith(f"{path}/") for file in files if is_aside(file))}
    return DirectoryScan(files, directories | kept, now.links, now.odd)


def is_aside(path: str) -> bool:
    """Is this a name for something half-written?"""
    return any(map(_ASIDE.fullmatch, path.split("/")))
