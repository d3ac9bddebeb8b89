"""The state directory of a sync: its clone, what it remembers, and the lock that makes it the only one there."""

from __future__ import annotations

import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from monkey.atomic_write import write_atomically
from monkey.errors import MonkeyError
from monkey.removal import remove_below
from monkey.spec.project_paths import read_regular_file
from monkey.untrusted_files import make_private_directory

#: Seconds that a lock is waited for: a git of a sync that was killed may still write there.
_LOCK_WAIT = 10.0
#: Bytes of the memo that are read.
_MOST = 1 << 16
#: What a work tree keeps when it is made again: which stores were met, for one that vanishes to be missed.
_KEPT = ".monkey"


@dataclass(frozen=True)
class SyncMemo:
    """What a sync remembers: enough to write its beat while the newest commit cannot even be read."""

    store: str = ""
    project: str = ""
    #: The commit that was applied last.
    applied: str = ""
    applied_at: float = 0.0


@dataclass
class SyncDirectory:
    """A state directory, locked."""

    path: Path
    #: The repository's name: its work tree has it, too, as a project without `project:` is named by its directory.
    name: str
    #: The descriptor that holds the lock. A git that writes here inherits it: the lock outlives a killed sync with it.
    lock: int = field(default=-1)

    @property
    def tree(self) -> Path:
        """Where the clone's work tree is."""
        return self.path / "tree" / self.name

    def open(self) -> None:
        """Make the directory, and lock it. Raises MonkeyError where another sync is at work there."""
        try:
            make_private_directory(self.path)
            self.lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as exc:
            hint = "name another directory by --directory"
            raise MonkeyError(f"the state directory {self.path} cannot be made: {exc.strerror}", hint=hint) from exc
        deadline = time.monotonic() + _LOCK_WAIT
        while not self._lock():
            if time.monotonic() > deadline:
                raise MonkeyError(
                    f"another sync is at work in {self.path}",
                    hint="stop that one first, or give this one a directory of its own by --directory",
                )
            time.sleep(0.1)

    def _lock(self) -> bool:
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Give the lock back."""
        os.close(self.lock)

    def read_memo(self) -> SyncMemo:
        """Return what was remembered; what cannot be read is forgotten."""
        try:
            said = json.loads(read_regular_file(self.path / "memo.json", _MOST))
            memo = SyncMemo(**said)
            return (
                memo if all(isinstance(text, str) for text in (memo.store, memo.project, memo.applied)) else SyncMemo()
            )
        except (OSError, ValueError, TypeError, RecursionError):
            return SyncMemo()

    def write_memo(self, memo: SyncMemo) -> None:
        """Remember it. Raises OSError."""
        write_atomically(self.path / "memo.json", json.dumps(asdict(memo)) + "\n", mode=0o600)

    def forget_tree(self) -> None:
        """Take the clone away, for another to be made; which stores it met is kept. Raises OSError."""
        if (self.tree / _KEPT).is_dir() and not (self.path / _KEPT).exists():
            (self.tree / _KEPT).rename(self.path / _KEPT)
        if not remove_below(self.path, f"tree/{self.name}"):
            raise OSError(f"{self.tree} cannot be removed")

    def restore_stores(self) -> None:
        """Put back what `forget_tree` kept. Raises OSError."""
        if (self.path / _KEPT).is_dir() and not (self.tree / _KEPT).exists():
            (self.path / _KEPT).rename(self.tree / _KEPT)
