"""A work tree to take snapshots of."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Git = Callable[..., str]


def write(root: Path, **files: str) -> None:
    """Write files; in a name, '__' stands for '/' and the last '_' for '.'."""
    for name, text in files.items():
        path = root / ".".join(name.replace("__", "/").rsplit("_", 1))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def git(require: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """Return a function that runs git in a directory, whatever the user configured."""
    program = require("git")
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, os.devnull)
    identity = [
        "-c",
        "user.name=n",
        "-c",
        "user.email=e@x",
        "-c",
        "protocol.file.allow=always",
        "-c",
        "init.defaultBranch=main",
    ]

    def run(where: Path, *arguments: str) -> str:
        done = subprocess.run([program, "-C", str(where), *identity, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


@pytest.fixture
def repository(git: Git, tmp_path: Path) -> Path:
    """Return a work tree with some of everything, committed."""
    root = tmp_path / "repository"
    write(root, train_py="train", lib__model_py="model", README_md="readme", data__x_csv="x", monkey_yaml="m")
    write(root, specs__digits_yaml="spec", ignored_txt="i")
    (root / ".github" / "workflows").mkdir(parents=True)
    (root / ".github" / "workflows" / "ci.yml").write_text("ci")
    (root / ".gitignore").write_text("ignored*\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    return root
