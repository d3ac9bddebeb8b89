"""Commits: what was applied is not taken back by one that came before it, unless that is asked for."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from monkey.apply.execute import execute_plan
from monkey.apply.planning import make_plan
from monkey.errors import NotADescendant
from monkey.protocol.sweeps.sweep_log import read_sweep
from tests.unit.apply.small_project import apply, opened


def git(root: Path, *arguments: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    return subprocess.run(
        ["git", "-C", root, *who, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(root: Path, text: str) -> str:
    (root / "train.py").write_text(f"print({text!r})\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", text)
    return git(root, "rev-parse", "HEAD")


def test_earlier_commit_is_refused_unless_asked_for(root: Path) -> None:
    git(root, "init", "-q")
    first = commit(root, "first")
    second = commit(root, "second")

    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
            git(root, "checkout", "-q", first)
            planned = await make_plan(world, [])
            with pytest.raises(NotADescendant, match=second[:10]) as caught:
                await execute_plan(world, planned.plan, planned.wanted, lambda what, done: None)
            assert "--rollback" in (caught.value.hint or "")
            await apply(world, rollback=True)
            state = await read_sweep(world.at, world.keys, world.signers, "small")
            assert state.revision is not None and state.revision.rollback
            assert state.revision.git == {"commit": first, "branch": None, "dirty": False}

    asyncio.run(main())


def test_commit_that_this_clone_lacks_is_not_an_ancestor(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    git(root, "init", "-q")
    commit(root, "first")
    late = tmp_path_factory.mktemp("late") / "clone"
    git(root, "clone", "-q", str(root), str(late))
    (late / "monkey.yaml").write_text(f"project: test\nstore: {root}/.monkey/store\n")
    commit(root, "second")

    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
        async with opened(late) as world:
            planned = await make_plan(world, [])
            with pytest.raises(NotADescendant):
                await execute_plan(world, planned.plan, planned.wanted, lambda what, done: None)

    asyncio.run(main())
