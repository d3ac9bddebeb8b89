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


def leave_unread(spaces: Workspaces, root: Path, number: int) -> str:
    """Take a workspace, leave an output there that cannot be read, and give it back; return its name."""
    space = spaces.take(f"{number:016d}", 1)
    Path(space.outputs, "model").write_text("weights")
    told = space.keep_unread(PermissionError(13, "Permission denied", f"{space.outputs}/model"))
    assert f"Permission denied: {root}/unread/{space.name}/outputs/model (hint: " in told
    spaces.give(space)
    assert Path(root, "unread", space.name, "outputs", "model").read_text() == "weights"
    return space.name


def test_what_could_not_be_read_stays_but_not_without_end(tmp_path: Path) -> None:
    spaces = Workspaces(tmp_path)
    names = [leave_unread(spaces, tmp_path, number) for number in range(20)]
    spaces.empty_trash()
    assert {path.name for path in (tmp_path / "unread").iterdir()} == set(names[-16:])
    another = spaces.take("b" * 16, 1)
    assert not list(Path(another.outputs).iterdir())
    Workspaces(tmp_path)
    assert len(list((tmp_path / "unread").iterdir())) == 16, "the next agent keeps them"
