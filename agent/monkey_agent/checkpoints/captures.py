# ruff: noqa: PTH103, PTH123, PTH211
# Paths are plain strings here: pathlib costs as much as the system calls.
"""Captures: copies of a job's checkpoint at a moment at which it was whole. Hard links cost no bytes and no time.

A link keeps the file when the job replaces it. It does not keep the bytes if the job writes into the file itself. Then
the size or time of modification changes, and the agent copies that job's files instead.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from monkey.protocol.record.history_parts import HistoryPart, parse_parts
from monkey.removal import remove_tree
from monkey.store.directory.publish import copy_bytes
from monkey.untrusted_files import HeldDirectory, load_json
from monkey_agent.checkpoints.directory_scan import DirectoryScan, FileState, find_settled, is_inner, scan_directory
from monkey_agent.machine import read_boot_id

#: Names in a capture: the files, their state when they were taken, and the mark of a capture that is in the store.
TREE, SEEN, PUBLISHED = "tree", "seen.json", "published"
#: Bytes of the files' state that are read: that of a million files.
_MOST_BYTES = 256 << 20


@dataclass(frozen=True)
class Capture:
    """A capture in the directory `root`."""

    root: str
    #: The scan of the job's directory that was captured.
    tree: DirectoryScan
    #: What its attempt continued, and how much that itself had logged.
    history: tuple[HistoryPart, ...] = ()

    def path(self, file: str) -> str:
        """Return the path of a file of the capture."""
        return f"{self.root}/{TREE}/{file}"

    @property
    def is_whole(self) -> bool:
        """Return whether all files still have the size and time of modification that they had when they were taken."""
        try:
            return all(_same(os.lstat(self.path(path)), seen) for path, seen in self.tree.files.items())
        except OSError:
            return False

    @property
    def is_published(self) -> bool:
        """Return whether the capture is in the store."""
        return os.path.exists(f"{self.root}/{PUBLISHED}")  # noqa: PTH110

    def mark_published(self) -> None:
        """Note that the capture is in the store. Raises OSError."""
        os.close(os.open(f"{self.root}/{PUBLISHED}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))

    def put_into(self, directory: str) -> None:
        """Fill an empty directory with the capture (the same files, linked). Raises OSError."""
        for path in sorted(self.tree.directories):
            os.makedirs(f"{directory}/{path}", exist_ok=True)
        for path in self.tree.files:
            os.link(self.path(path), f"{directory}/{path}", follow_symlinks=False)
        for path, target in self.tree.links.items():
            os.symlink(target, f"{directory}/{path}")


def _same(status: os.stat_result, seen: FileState) -> bool:
    return (status.st_size, status.st_mtime_ns) == (seen.size, seen.mtime)


def take_capture(
    directory: str, before: DirectoryScan, root: str, history: tuple[HistoryPart, ...] = (), *, copies: bool
) -> Capture | None:
    """Capture `directory` into the new directory `root`, if the scan `before` saw what is there now.

    Returns None where a process is writing; then `root` is removed. `copies`: copy files, as the job writes into them.
    Raises OSError.
    """
    try:
        with HeldDirectory(directory) as held:
            return _capture(held, before, root, history, copies=copies)
    except FileNotFoundError:  # the job removed it, with all that was in it
        return _save(Capture(root, before, history)) if before == DirectoryScan() else None


def _capture(
    held: HeldDirectory, before: DirectoryScan, root: str, history: tuple[HistoryPart, ...], *, copies: bool
) -> Capture | None:
    now = scan_directory(held)
    tree = find_settled(held, before, now)
    if tree is None:
        return None
    try:
        _fill(held, tree, f"{root}/{TREE}", copies=copies)
        capture = Capture(root, tree, history)
        if find_settled(held, now, scan_directory(held)) == tree and (copies or _is_linked(capture)):
            return _save(capture)
    except (FileNotFoundError, NotADirectoryError):
        pass  # replaced between look and link
    except BaseException:
        remove_tree(root)
        raise
    remove_tree(root)
    return None


def _save(capture: Capture) -> Capture:
    os.makedirs(f"{capture.root}/{TREE}", exist_ok=True)
    with open(f"{capture.root}/{SEEN}", "w") as file:
        json.dump(_to_json(capture), file)
    return capture


def _fill(held: HeldDirectory, tree: DirectoryScan, to: str, *, copies: bool) -> None:
    os.makedirs(to)
    for path in sorted(tree.directories):
        os.makedirs(f"{to}/{path}", exist_ok=True)
    for path, seen in tree.files.items():
        if copies:
            _copy(held, path, f"{to}/{path}", seen)
        else:
            at, name = held.reach(path)
            os.link(name, f"{to}/{path}", src_dir_fd=at, follow_symlinks=False)


def _copy(held: HeldDirectory, path: str, to: str, seen: FileState) -> None:
    source = held.open_regular(path, os.O_RDONLY)
    try:
        target = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            copy_bytes(source, target)
        finally:
            os.close(target)
    finally:
        os.close(source)
    os.utime(to, ns=(seen.mtime, seen.mtime))


def _is_linked(capture: Capture) -> bool:
    return all(os.lstat(capture.path(path)).st_ino == seen.inode for path, seen in capture.tree.files.items())


def read_capture(root: str) -> Capture | None:
    """Return the capture in `root`; None where it cannot be relied on: damaged, or older than this boot.

    A file that was written without fsync may lose its bytes with the machine's power, and keep its size.
    """
    try:
        told = load_json(f"{root}/{SEEN}", _MOST_BYTES)
        if told["boot"] != read_boot_id():
            return None
        tree = DirectoryScan(
            {path: FileState(*seen) for path, seen in told["files"].items()},
            frozenset(told["directories"]),
            {path: target for path, target in told["links"].items() if is_inner(target)},
        )
        history = parse_parts(told["history"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    capture = Capture(root, tree, history)
    return capture if capture.is_whole else None


def _to_json(capture: Capture) -> dict[str, Any]:
    tree = capture.tree
    return {
        "boot": read_boot_id(),
        "files": tree.files,
        "directories": sorted(tree.directories),
        "links": tree.links,
        "history": [part.to_json() for part in capture.history],
    }
