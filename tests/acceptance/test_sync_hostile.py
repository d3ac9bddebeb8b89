"""Pull requests of strangers: a sync runs what it may, starts no program of theirs, and sends no file of ours."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from monkey.removal import remove_tree
from tests.acceptance.shop import until
from tests.acceptance.test_sync_previews import Forged, forged  # noqa: F401 - a fixture
from tests.git_remote import GitRemote
from tests.hostile_repository import PRIVATE, HostileRepository

#: How many are opened, unless `--seeds` says it.
MOST = 60 if "MONKEY_LONG" in os.environ else 8


def commit_tree(remote: GitRemote, root: Path, branch: str) -> str:
    """Push what is below a directory as a branch, but for the settings of its git, which cannot be pushed."""
    remote.git("checkout", "-q", "-f", "-B", branch, "main")
    for path in remote.work.iterdir():
        if path.name != ".git":
            path.unlink() if path.is_symlink() or path.is_file() else remove_tree(path)
    shutil.copytree(root, remote.work, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git"))
    command = ["git", "-C", str(remote.work), "-c", "core.fsmonitor=false", "add", "-A", "-f", "--ignore-errors"]
    subprocess.run(command, capture_output=True, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})
    remote.git("commit", "-q", "--allow-empty", "-m", branch)  # git itself refuses some
    remote.git("push", "-q", "origin", f"HEAD:{branch}")
    return remote.git("rev-parse", "HEAD")


@pytest.mark.slow
def test_pull_requests_of_strangers_start_nothing_and_take_nothing(
    forged: Forged,  # noqa: F811
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    made, remote = list[HostileRepository](), forged.remote
    for seed in range(request.config.getoption("--seeds") or MOST):
        base = Path(os.path.realpath(tmp_path)) / f"hostile{seed}"
        base.mkdir()
        hostile = HostileRepository(base, seed)
        forged.forge.open_pull(f"h{seed}", commit_tree(remote, hostile.root, f"h{seed}"))
        hostile.pwned.unlink(missing_ok=True)  # by the git that committed it
        made.append(hostile)
    remote.git("checkout", "-q", "-f", "main")
    said = forged.shop.run("sync", "--once", "--previews", code=None, patience=600).stdout
    until(lambda: not forged.shop.jobs, "their jobs are done")
    secret = PRIVATE.split()[-1]
    assert "previews: pull request" in said and "bug in monkey" not in said and secret not in said, said
    assert not [seed for seed, hostile in enumerate(made) if hostile.pwned.exists()], said
    for path in forged.store.rglob("*"):
        if path.is_file():
            text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            assert secret.encode() not in text, path
