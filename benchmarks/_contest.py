"""One shape of data, and who uploads it into a directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from _common import MONKEY, Run, run

DVC = [sys.executable, "-m", "dvc"]


def fill(root: Path, files: int, size: int) -> Path:
    """Make a tree of files that differ."""
    for n in range(files):
        path = root / f"{n % 100:02d}" / f"{n:06d}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        block = os.urandom(min(size, 1 << 20))
        with path.open("wb") as file:
            for at in range(0, size, len(block)):
                file.write(block[: size - at])
    return root


class Contest:
    """Who uploads the data, ours first: each round into new destinations, then again into the same."""

    #: Each has methods NAME_first and NAME_second, which return seconds.
    contestants: tuple[str, ...] = ("monkey", "rclone")

    def __init__(self, home: Path, data: Path) -> None:
        """Work below `home`."""
        self._home, self._data, self._count = home, data, 0
        #: Most memory that ours took, in bytes.
        self.peak = 0
        self._last: dict[str, Path] = {}

    def counted(self) -> int | None:
        """Return how many requests were counted since the last time; None where nobody counts."""
        return None

    def _new(self, who: str) -> Path:
        """Return a new directory. Old ones stay: a file system is slow where much was just removed."""
        self._count += 1
        self._last[who] = self._home / f"{who}-{self._count}"
        self._last[who].mkdir()
        # What others wrote and did not sync must not be on our bill, nor ours on theirs.
        subprocess.run(["sync", "-f", str(self._home)], check=True)
        return self._last[who]

    def _push(self, path: str, cwd: Path, env: dict[str, str]) -> float:
        ran: Run = run([MONKEY, "push", "--path", path], cwd=cwd, env=env)
        self.peak = max(self.peak, ran.peak)
        return ran.seconds

    def monkey_first(self) -> float:
        """Hash and upload, nothing known."""
        self._new("monkey")
        return self.monkey_second()

    def monkey_second(self) -> float:
        """Do it again."""
        home = self._last["monkey"]
        return self._push(str(self._data), home, {"XDG_CACHE_HOME": str(home / "cache")})

    def rclone_first(self) -> float:
        """Copy to a new directory."""
        self._new("rclone")
        return self.rclone_second()

    def rclone_second(self) -> float:
        """Do it again."""
        return run(["rclone", "copy", "-q", str(self._data), str(self._last["rclone"] / "copy")]).seconds


class DvcContest(Contest):
    """Data that DVC tracks, in a repository: `dvc push` beside ours."""

    contestants = ("monkey", "dvc")

    def __init__(self, home: Path, data: Path) -> None:
        """Track `data` in a repository of its own."""
        self._repository = home / "repository"
        self._repository.mkdir()
        self._env = {"DVC_SITE_CACHE_DIR": str(home / "site"), "DVC_NO_ANALYTICS": "1"}
        shutil.copytree(data, self._repository / "data")
        for words in (["init", "-q", "--no-scm"], ["add", "-q", "data"]):
            run([*DVC, *words], cwd=self._repository, env=self._env)
        super().__init__(home, self._repository / "data")

    def monkey_second(self) -> float:
        """Push, the hashes known to DVC."""
        (self._repository / "monkey.yaml").write_text(f"store: {self._last['monkey'] / 'store'}\n")
        return self._push("data", self._repository, self._env)

    def dvc_first(self) -> float:
        """Push to a new remote."""
        remote = self._new("dvc")
        run([*DVC, "remote", "add", "-q", "-f", "-d", "bench", str(remote)], cwd=self._repository, env=self._env)
        return self.dvc_second()

    def dvc_second(self) -> float:
        """Push again."""
        return run([*DVC, "push", "-q"], cwd=self._repository, env=self._env).seconds
