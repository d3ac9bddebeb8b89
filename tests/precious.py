"""A directory that is none of a job's: what lies in it must stay there, as it is, and go nowhere."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from monkey.metrics.usage import USAGE_FILE

#: In each of its files.
MARK = b"nobody's but mine"
#: What a file of metrics would be read as.
_LINE = b'{"m":{"mine":1},"step":1,"t":1790000000.5,"x":"%b"}\n' % MARK


class Precious:
    """Such a directory. It has what a workspace has, too, so that a link to it may stand for one."""

    def __init__(self, root: Path, age: float = 0.0) -> None:
        """Make it; all in it was changed `age` seconds ago."""
        self.root = root
        for name in ("", "old", "work", "outputs", "metrics", "checkpoint"):
            (root / name).mkdir(parents=True)
            (root / name / "thesis.tex").write_bytes(MARK)
            (root / name / "0.jsonl").write_bytes(_LINE)
        for name in ("log", USAGE_FILE):
            (root / name).write_bytes(_LINE)
        for path in (root, *root.rglob("*")):
            os.utime(path, (path.stat().st_atime, path.stat().st_mtime - age))
        self.begin()

    def begin(self) -> None:
        """Remember what is there now: more may have been put there."""
        self._before = self._state()

    def _state(self) -> dict[str, tuple[int, int, str]]:
        """Return path to mode, time of change and digest."""
        found = {}
        for path in (self.root, *sorted(self.root.rglob("*"))):
            status = path.lstat()
            digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            found[str(path)] = status.st_mode, status.st_mtime_ns, digest
        return found

    def check(self, *elsewhere: Path) -> None:
        """See that all is as it was, and that no file below the directories `elsewhere` holds anything of it."""
        assert self._state() == self._before
        for path in (path for place in elsewhere for path in place.rglob("*") if path.is_file()):
            assert path.is_symlink() or MARK not in path.read_bytes(), path
