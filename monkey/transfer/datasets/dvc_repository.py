"""A DVC repository that is only read: nothing is written into it, nor where its settings say.

DVC makes a lock, a temporary directory and lines of `.gitignore` in a repository, and keeps its state where
`core.site_cache_dir` says. A stranger's branch may say so, and may have links in `.dvc`.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from dvc.config import Config
from dvc.dirs import site_cache_dir
from dvc.lock import LockError
from dvc.repo import Repo

from monkey.spec.project_paths import resolve_in_project

#: DVC's lock, and the file whose time names the directory of its state.
_LOCK, _BIRTH = ".dvc/tmp/lock", ".dvc/tmp/btime"


class ReadRepo(Repo):  # type: ignore[misc]  # DVC has no types
    """The repository at one place. Its state is DVC's own if DVC ran here, else one in our cache."""

    def __init__(self, root: Path, home: Path) -> None:
        """Open it; `home`: the directory in which this machine remembers hashes of data. Raises DvcException."""
        self._top, self._home = root, home
        # Without a repository, DVC reads the settings of the user and of the machine alone.
        own = site_cache_dir(Config().get("core", {}).get("site_cache_dir"))
        state = own if self._btime is not None else self.tmp_dir
        try:
            # Git is asked by us alone, with our flags.
            super().__init__(str(root), config={"core": {"site_cache_dir": state, "no_scm": True}})
        except BaseException:
            if "state" in vars(self):
                self.state.close()  # its database of hashes, which DVC opens before it looks at caches
            raise

    @property
    def tmp_dir(self) -> str:
        """Where DVC may write, instead of `.dvc/tmp`."""
        name = sha256(os.fsencode(os.path.realpath(self._top))).hexdigest()[:16]
        return str(self._home / "dvc" / name)

    @property
    def _btime(self) -> float | None:
        try:
            return resolve_in_project(self._top / _BIRTH, self._top).stat().st_mtime
        except (OSError, ValueError):
            return None

    def _ignore(self) -> None:
        """Leave `.gitignore` as it is."""

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep DVC's commands away while it is read. Raises LockError where one is at work."""
        try:
            path = resolve_in_project(self._top / _LOCK, self._top)
            lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        except (OSError, ValueError):
            yield  # no command of DVC ever ran here
            return
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError as exc:
                raise LockError(str(exc)) from exc
            yield
        finally:
            os.close(lock)
