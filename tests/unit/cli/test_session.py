"""The project around the working directory."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.cli.session import find_project


def test_two_clones_are_one_project_whatever_their_directories_are_called(
    tmp_path: Path, require: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    git = require("git")
    subprocess.run([git, "init", "-q", "--bare", tmp_path / "lab.git"], check=True)
    for name in ("laptop", "runner"):
        subprocess.run([git, "clone", "-q", tmp_path / "lab.git", tmp_path / name], check=True, capture_output=True)
        monkeypatch.chdir(tmp_path / name)
        assert find_project().name == "lab"
    # A project within the repository is another one, and its directory is called so in all clones.
    (tmp_path / "runner" / "vision").mkdir()
    (tmp_path / "runner" / "vision" / "monkey.yaml").touch()
    monkeypatch.chdir(tmp_path / "runner" / "vision")
    assert find_project().name == "vision"
    subprocess.run([git, "-C", tmp_path / "laptop", "remote", "remove", "origin"], check=True)
    monkeypatch.chdir(tmp_path / "laptop")
    assert find_project().name == "laptop"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Exception, match="only git can tell"):
        find_project()
