"""Git as a child process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.errors import PlanError
from monkey.transfer.code.git_process import run_git


def test_git_reaches_no_remote_unless_it_may(
    tmp_path: Path, require: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    require("git")
    run_git(tmp_path, "init", "-q", "--bare", "r.git")
    assert b"not allowed" in run_git(tmp_path, "ls-remote", str(tmp_path / "r.git")).stderr
    # What the environment allows is no more than what we allow.
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file:ext")
    assert b"not allowed" in run_git(tmp_path, "ls-remote", str(tmp_path / "r.git")).stderr
    assert run_git(tmp_path, "ls-remote", str(tmp_path / "r.git"), online={}).returncode == 0
    assert b"not allowed" in run_git(tmp_path, "ls-remote", f"ext::touch {tmp_path}/pwned", online={}).stderr
    assert not (tmp_path / "pwned").exists()


def test_without_git_and_without_an_answer_that_is_said(
    tmp_path: Path, require: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    require("git")
    with pytest.raises(PlanError, match=r"did not answer within 0\.2 s"):
        run_git(tmp_path, "-c", "alias.hang=!sleep 30", "hang", timeout=0.2)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PlanError, match="no git here"):
        run_git(tmp_path, "status")
