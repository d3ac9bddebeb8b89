"""Where Pulumi runs."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from semver import VersionInfo

from monkey_stacks.engine.automation import AutomationWorkspace
from monkey_stacks.engine.engine_command import EngineDeadline
from monkey_stacks.engine.installation import PINNED, PulumiCli


def test_what_killed_ones_left_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone = subprocess.Popen(["true"])
    gone.wait()
    left, living, other = (
        tmp_path / f"monkey-pulumi-{gone.pid}-x",
        tmp_path / f"monkey-pulumi-{os.getpid()}-x",
        tmp_path / "monkey-pulumi-x",
    )
    for directory in (left, living, other):
        directory.mkdir()
        (directory / "Pulumi.yaml").touch()
    runs = AutomationWorkspace(PulumiCli("pulumi", VersionInfo.parse(PINNED)), {}, EngineDeadline())
    assert not left.exists() and living.exists() and other.exists()
    runs.close()
    assert sorted(tmp_path.iterdir()) == sorted([living, other])
