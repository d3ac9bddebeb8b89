"""A git remote for tests: a bare repository, and a clone in which somebody commits and pushes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_AUTHOR = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main", "-c", "gc.auto=0")


class GitRemote:
    """A bare repository `path`, and the clone `work`."""

    def __init__(self, base: Path, work: Path | None = None) -> None:
        """Make both below `base`; `work`: a directory that becomes the clone, with what is in it."""
        self.path, self.work = base / "sweeps.git", work or base / "work"
        base.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "--bare", str(self.path), at=base)
        self.git("init", "-q", str(self.work), at=base)
        self.git("remote", "add", "origin", str(self.path))

    def git(self, *arguments: str, at: Path | None = None) -> str:
        """Run git in the clone, whatever the user configured, and return what it prints."""
        env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        command = ["git", *_AUTHOR, "-C", str(at or self.work), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout.strip()

    def commit(self, push: bool = True) -> str:
        """Commit all that is in the clone, push it, and return the commit."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "a change")
        if push:
            self.push()
        return self.git("rev-parse", "HEAD")

    def push(self) -> None:
        """Push the branch, also one whose history was rewritten."""
        self.git("push", "-q", "--force", "origin", "HEAD:main")
