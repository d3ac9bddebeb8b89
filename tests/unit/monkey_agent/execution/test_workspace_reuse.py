"""What a job left in its workspace reaches no other job."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey_agent.execution.workspace import CONTAINER_USAGE_FILE, Workspaces


@pytest.mark.parametrize("kind", ["file", "link", "directory"])
def test_the_usage_of_a_container_is_of_its_own_job(tmp_path: Path, kind: str) -> None:
    spaces = Workspaces(tmp_path / "state")
    space = spaces.take("a" * 16, 1)
    left = Path(space.root, CONTAINER_USAGE_FILE)
    if kind == "directory":
        left.mkdir()
    elif kind == "link":
        left.symlink_to("work")
    else:
        left.write_text("memory.peak 1")
    spaces.give(space)
    after = Path(spaces.take("b" * 16, 1).root)
    assert (after / "work").is_dir() and not (after / CONTAINER_USAGE_FILE).is_symlink()
    assert not (after / CONTAINER_USAGE_FILE).exists()
