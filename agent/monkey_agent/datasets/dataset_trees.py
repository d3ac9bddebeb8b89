# ruff: noqa: PTH114, PTH101, PTH102, PTH103, PTH105, PTH112, PTH123
# Paths are plain strings here: there may be 100,000 of them.
"""Dataset trees: what jobs see of a dataset. A tree has read-only hard links to objects, and a stamp of their state.

A job may write to a file that its user owns all the same, and root may write to any. So the stamp has a digest of the
identity of every file (inode, size, times). Whatever writes to a file, replaces or removes it, or changes its rights,
changes its time of change, which no process can set back. So does our own link to an object for another tree: then the
files are read once more, and stamped again.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import stat
from pathlib import Path
from typing import NamedTuple

from monkey.atomic_write import write_atomically
from monkey.removal import remove_file, remove_tree
from monkey_agent.datasets.dataset_listing import list_directories
from monkey_agent.machine import read_boot_id

#: Every file's time of modification, in seconds (the year 2000): the same on all machines, and long before any write
#: that could follow within one tick of the file system's clock.
MODIFIED = 946_684_800
#: Bytes that are hashed without leaving the event loop.
_SMALL_BYTES = 256 * 1024
#: Errors of a link to an object that has as many names as the file system allows.
_FULL = (errno.EMLINK,)


class TreeStamp(NamedTuple):
    """The state of a tree when it was verified."""

    #: The boot of the machine then: a loss of power may take the bytes of files, and leave their names.
    boot: str
    files: int
    digest: str


def read_stamp(tree: str) -> TreeStamp | None:
    """Return a tree's stamp; None where the tree was never finished."""
    try:
        with open(f"{tree}.stamp", "rb") as file:
            said = json.load(file)
        return TreeStamp(str(said["boot"]), int(said["files"]), str(said["digest"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_there(tree: str) -> bool:
    """Return whether a tree was finished since the machine's boot, altered or not."""
    stamp = read_stamp(tree)
    return stamp is not None and stamp.boot == read_boot_id() and os.path.lexists(tree)


def is_sound(tree: str, stamp: TreeStamp | None) -> bool:
    """Return whether a tree is as it was when it was stamped; takes about 2 µs a file."""
    if stamp is None or stamp.boot != read_boot_id():
        return False
    try:
        return _look(tree) == (stamp.files, stamp.digest)
    except OSError:
        return False


def write_stamp(tree: str) -> None:
    """Stamp a tree whose files were all verified. Raises OSError."""
    files, digest = _look(tree)
    write_atomically(f"{tree}.stamp", json.dumps(TreeStamp(read_boot_id(), files, digest)._asdict()))


def _look(tree: str) -> tuple[int, str]:
    """Return the number of files in a tree, and a digest of all their identities. Raises OSError."""
    status = os.lstat(tree)
    if not stat.S_ISDIR(status.st_mode):
        return 1, hashlib.sha256(_identity("", status)).hexdigest()
    digest, count, todo = hashlib.sha256(), 0, [tree]
    while todo:
        directory = todo.pop()
        digest.update(os.fsencode(f"{directory[len(tree) :]}/\n"))
        with os.scandir(directory) as found:
            for item in sorted(found, key=_name):
                if item.is_dir(follow_symlinks=False):
                    todo.append(item.path)
                else:
                    count += 1
                    digest.update(_identity(item.name, item.stat(follow_symlinks=False)))
    return count, digest.hexdigest()


def _name(item: os.DirEntry[str]) -> str:
    return item.name


def _identity(name: str, status: os.stat_result) -> bytes:
    numbers = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode)
    return os.fsencode(f"{name}\0{numbers}\n")


class DatasetTree:
    """One tree in the making, or in repair, as a plain path."""

    def __init__(self, root: str) -> None:
        """Work on the tree at `root`, whose lock is held."""
        self.root = root

    def begin(self, files: dict[str, str]) -> None:
        """Make all directories, writable, and remove all that is not in `files` (path to object). Raises OSError."""
        os.makedirs(self.root, exist_ok=True)
        os.chmod(self.root, 0o755)
        wanted = set(list_directories(files))
        for directory, names, others in os.walk(self.root):
            below = directory[len(self.root) + 1 :]
            prefix = f"{below}/" if below else ""
            for name in list(names):
                if prefix + name in wanted and not os.path.islink(f"{directory}/{name}"):
                    os.chmod(f"{directory}/{name}", 0o755)
                else:
                    names.remove(name)
                    remove_tree(f"{directory}/{name}")
            for name in others:
                if prefix + name not in files:
                    remove_file(f"{directory}/{name}")
        for path in list_directories(files):
            with contextlib.suppress(FileExistsError):
                os.mkdir(f"{self.root}/{path}")

    def finish(self, files: dict[str, str]) -> None:
        """Make all directories within read-only. Raises OSError.

        Not the tree's own yet: only root may move a directory that cannot be written.
        """
        for path in reversed(list_directories(files)):
            os.chmod(f"{self.root}/{path}", 0o555)


def link_object(source: str, target: str) -> None:
    """Link an object at `target` in a tree, replacing what is there. Raises OSError (FileNotFoundError: no object)."""
    try:
        os.link(source, target)
        return
    except FileExistsError:
        if os.path.samestat(os.lstat(source), os.lstat(target)):
            return
        if os.path.isdir(target) and not os.path.islink(target):
            remove_tree(target)
    except OSError as exc:
        if exc.errno not in _FULL:
            raise
        _renew(source)
    aside = f"{target}.{secrets.token_hex(4)}"
    os.link(source, aside)
    os.replace(aside, target)  # running jobs that read there keep what they had opened


def _renew(source: str) -> None:
    """Replace an object by a copy, as it has as many names as a file can have. Raises OSError."""
    aside = f"{source}.{secrets.token_hex(4)}"
    with open(source, "rb") as file:
        Path(aside).write_bytes(file.read())
    seal_file(aside)
    os.replace(aside, source)


def seal_file(path: str) -> None:
    """Make a file ready for jobs: read-only, with `MODIFIED` as its time of modification. Raises OSError."""
    os.chmod(path, 0o444)
    os.utime(path, (MODIFIED, MODIFIED))


def compute_md5(path: str) -> str:
    """Return the MD5 of a file, 32 hex."""
    with open(path, "rb", buffering=0) as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
