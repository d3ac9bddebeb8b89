"""Datasets, and who can tell what became of them: real DVC, and the store's own directory."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from monkey.transfer.datasets.hash_state import COARSE_TICK
from tests.acceptance.shop import until

SPEC = "datasets: {d: data}\ncommand: [python3, -c, 'pass']\noutputs: []\n"
LISTING = re.compile(r"\b[0-9a-f]{32}\.dir\b")


def fill(root: Path, files: int, size: int = 100) -> Path:
    """Make a tree of files, each with content of its own."""
    for n in range(files):
        path = root / f"{n % 10}" / f"{n:05d}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(hashlib.sha256(b"%d" % n).digest() * (size // 32 + 1))
    return root


def settle(root: Path) -> None:
    """Wait until every file below has been left alone for so long that its times would show a change.

    Verbs that are forks look within milliseconds, and keep no hash of a file that was written just then.
    """
    newest = max(path.stat().st_ctime_ns for path in root.rglob("*"))
    until(lambda: time.time_ns() > newest + COARSE_TICK, f"{root} was written just now")


def contents(root: Path) -> dict[str, bytes]:
    """Return every file below, and its bytes."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def objects(store: Path) -> dict[str, Path]:
    """Return what lies under `files/md5` by MD5, as the file system has it."""
    return {path.parent.name + path.name: path for path in (store / "files/md5").rglob("*") if path.is_file()}


def whole(store: Path) -> bool:
    """Tell whether every object's bytes are those of its name."""
    return all(
        hashlib.md5(path.read_bytes()).hexdigest() == oid.removesuffix(".dir") for oid, path in objects(store).items()
    )


def site(root: Path) -> Path:
    """Return where DVC keeps what it shares between repositories: beside this one, or it would be code."""
    return root.with_name(f"{root.name}.dvc-site")


def dvc(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the real DVC."""
    # It keeps a cache of listings by URL in a place of its own, which would answer in a store's stead.
    env = {**os.environ, "DVC_SITE_CACHE_DIR": str(site(cwd)), "DVC_NO_ANALYTICS": "1"}
    words = [sys.executable, "-m", "dvc", *arguments]
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"dvc {' '.join(arguments)}:\n{done.stdout}\n{done.stderr}"
    return done


def pulled(store: Path, oid: str, room: Path) -> Path:
    """Have DVC, in a repository of its own, pull this hash from the store; DVC verifies what it pulls."""
    if not room.exists():
        room.mkdir(parents=True)
        dvc("init", "-q", "--no-scm", cwd=room)
        remote = f"    url = {store}\n    verify = true\n"
        config = f"[core]\n    no_scm = True\n    remote = store\n['remote \"store\"']\n{remote}"
        (room / ".dvc" / "config").write_text(config)
    for left in (room / ".dvc/cache", site(room), room / "data"):
        shutil.rmtree(left, ignore_errors=True)
    (room / "data.dvc").write_text(f"outs:\n- md5: {oid}\n  hash: md5\n  path: data\n")
    dvc("pull", "-q", cwd=room)
    return room / "data"


def oid_of(output: str) -> str:
    """Return the hash that `monkey push` told."""
    (found,) = LISTING.findall(output)
    return found
