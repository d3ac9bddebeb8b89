"""Trees that anybody may have made are removed, and nothing beside them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from monkey.removal import remove_tree
from monkey_agent.checkpoints.local_checkpoints import LocalCheckpoints
from monkey_agent.execution.workspace import Workspaces
from tests.nested import nest
from tests.precious import Precious
from tests.steps import Step
from tests.swaps import swap


@pytest.mark.parametrize("depth", [1_500, 3_000])
def test_a_tree_deeper_than_any_path_may_be_long_is_removed(depth: int, tmp_path: Path) -> None:
    nest(tmp_path / "tree", depth)
    (tmp_path / "tree" / "beside").mkdir()
    assert remove_tree(str(tmp_path / "tree"))
    assert list(tmp_path.iterdir()) == []


def test_what_a_link_leads_to_stays(tmp_path: Path) -> None:
    kept, tree = tmp_path / "kept", tmp_path / "tree"
    kept.mkdir()
    (kept / "file").write_text("precious")
    (tree / "a" / "b").mkdir(parents=True)
    for link in (tree / "link", tree / "a" / "link", tree / "a" / "b" / "link", tmp_path / "itself"):
        link.symlink_to(kept)
    assert remove_tree(str(tree)) and remove_tree(str(tmp_path / "itself"))
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (kept / "file").read_text() == "precious"


def test_an_agent_starts_beside_a_checkpoint_that_is_too_deep(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    nest(tmp_path / "checkpoints" / "1.part", 1_500)
    assert LocalCheckpoints(tmp_path).stuck == []
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_a_workspace_that_is_too_deep_is_emptied(tmp_path: Path) -> None:
    spaces = Workspaces(tmp_path)
    space = spaces.take("a" * 16, 1)
    nest(Path(space.outputs, "tree"), 1_500)
    spaces.give(space)
    spaces.close()
    assert spaces.stuck == []


#: Mounts `kept` in a tree, where and as {0} says, removes the tree, and prints what is left of `kept`.
MOUNTED = """
mkdir -p tree/a/b/c kept && echo precious > kept/file && mkdir kept/inner && echo precious > kept/inner/file
{0}
{1} -c "from monkey.removal import remove_tree; print(remove_tree('tree'))"
find kept tree -name file | wc -l
"""
TMPFS = "mkdir tree/t; mount -t tmpfs none tree/t; mkdir tree/t/inner; touch tree/t/file tree/t/inner/file"


@pytest.mark.needs("mount")
@pytest.mark.parametrize(
    ("mount", "left"),
    [
        ("mount --bind kept tree", 4),
        ("mount --bind kept tree/a", 4),
        ("mount --bind kept tree/a/b/c", 4),
        (TMPFS, 4),
        ("true", 2),
    ],
)
def test_no_mount_is_crossed(mount: str, left: int, tmp_path: Path) -> None:
    """One of the same file system has the device of its root: only the kernel knows."""
    script = MOUNTED.format(mount, sys.executable)
    command = ["unshare", "--mount", "--map-root-user", "sh", "-ec", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(left == 2), str(left)], done.stderr


def test_a_swap_before_any_step_changes_nothing_behind_the_link(tmp_path: Path) -> None:
    """Neither files, nor rights: directories without any are given some."""
    step, precious = Step(), Precious(tmp_path / "precious")
    for place in ("", "a", "a/b"):
        for n in range(1_000):
            tree = tmp_path / f"{len(place)}.{n}"
            (tree / "a" / "b" / "c").mkdir(parents=True)
            for each in (tree / "a" / "b", tree / "a", tree):
                (each / "file").touch()
                each.chmod(0o500)
            with step.before(n, partial(swap, str(tree), place, str(precious.root))):
                remove_tree(tree)
            precious.check()
            if not step.came:
                break
        assert n > 1


#: As somebody who is not root, to whom everything is allowed.
UNPRIVILEGED = "import os, sys; from pathlib import Path; from {0} import {1}; os.getuid() or os.setuid(65534); "


def unprivileged(place: Path, script: str) -> str:
    """Run Python as nobody in `place`, whose ancestors nobody may look into; returns what it printed."""
    place.chmod(0o777)
    done = subprocess.run([sys.executable, "-c", script], cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_rights_that_a_job_took_away_are_no_hindrance(tmp_path: Path, require: Callable[[str], str]) -> None:
    require("unprivileged")
    make = "a = Path('tree/a'); b = a / 'b' / 'c'; b.mkdir(parents=True); (b / 'file').touch(); (a / 'file').touch(); "
    take = "[path.chmod(0o400 if path.name == 'a' else 0) for path in (b, b.parent, a, a.parent)]; "
    script = UNPRIVILEGED.format("monkey.removal", "remove_tree") + make + take + "print(remove_tree('tree'))"
    assert unprivileged(tmp_path, script) == "True"
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_removed_is_told_and_hinders_nobody(tmp_path: Path, require: Callable[[str], str]) -> None:
    require("unprivileged")
    foreign = tmp_path / "checkpoints" / "1.part" / "foreign"
    foreign.mkdir(parents=True)
    (foreign / "file").touch()
    foreign.chmod(0o555)
    for directory in (tmp_path / "checkpoints", foreign.parent):
        directory.chmod(0o777)
    told = unprivileged(
        tmp_path,
        UNPRIVILEGED.format("monkey_agent.checkpoints.local_checkpoints", "LocalCheckpoints")
        + "print(LocalCheckpoints(Path('.')).stuck)",
    )
    assert told == "['./checkpoints/1.part']"
    assert (foreign / "file").exists()
