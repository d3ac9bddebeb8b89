"""Sweeps whose spec is gone are cancelled as the plan says, and not if they were applied again meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from monkey.apply.execute import execute_plan
from monkey.apply.history.seen_commits import record_seen_commits
from monkey.apply.planning import make_plan, read_saved, remake_plan
from monkey.apply.world.world import World
from monkey.errors import ConcurrentApply, StalePlan
from monkey.plan.digest import compute_plan_digest
from monkey.plan.saved_plan import dump_saved_plan
from monkey.protocol.sweeps.sweep_log import append_order, read_sweep
from monkey.protocol.sweeps.sweep_state import SweepState
from tests.git_command import git
from tests.unit.apply.small_project import SPEC, StillFleet, apply, opened

OTHER = SPEC.replace("name: small", "name: other").replace("[1, 2, 3]", "[7, 8, 9]")


def commit(root: Path) -> str:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "more")
    return git(root, "rev-parse", "HEAD")


def begin(root: Path) -> None:
    """Make a repository with two specs."""
    (root / ".gitignore").write_text(".monkey/\n*plan.json\n")
    (root / "specs" / "other.yaml").write_text(OTHER)
    git(root, "init", "-q")
    commit(root)


async def state(world: World, name: str) -> SweepState:
    return await read_sweep(world.at, world.keys, world.signers, name)


def silent(what: str, done: str) -> None:
    pass


def test_gone_sweep_is_cancelled_with_its_reason_and_no_machine_is_made_for_it(root: Path) -> None:
    begin(root)

    async def main() -> None:
        fleet = StillFleet()
        async with opened(root, fleet) as world:
            await apply(world)
            (root / "specs" / "other.yaml").unlink()
            head = commit(root)
            shown = (await make_plan(world, [])).plan
            assert [(gone.name, gone.pruned) for gone in shown.gone] == [("other", False)] and not shown.changes
            planned = await make_plan(world, [], prune=True)
            assert planned.plan.changes and planned.plan.fleets[0].jobs == 3 < shown.fleets[0].jobs
            await execute_plan(world, planned.plan, planned.wanted, silent)
            ended = await state(world, "other")
            assert ended.cancelled == f"its spec left git (commit {head[:10]})" and ended.cancelled_by
            assert (await state(world, "small")).head == 1
            again = (await make_plan(world, [], prune=True)).plan
            assert not again.gone and not again.changes

    asyncio.run(main())


def test_sweep_that_was_applied_meanwhile_is_not_cancelled(root: Path) -> None:
    begin(root)

    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
            (root / "specs" / "other.yaml").unlink()
            commit(root)
            planned = await make_plan(world, [], prune=True)
            saved = root / "plan.json"
            saved.write_text(dump_saved_plan(planned.plan, ["specs/small.yaml"], prune=True))
            await append_order(world.at, world.keys, world.signers, "other", "pause")
            again = await remake_plan(world, read_saved(saved))
            assert compute_plan_digest(again.plan) == compute_plan_digest(planned.plan), "an order is no revision"
            (root / "specs" / "other.yaml").write_text(OTHER.replace("9]", "9, 10]"))
            await apply(world, str(root / "specs" / "other.yaml"))
            (root / "specs" / "other.yaml").unlink()
            with pytest.raises(ConcurrentApply, match="'other'"):
                await execute_plan(world, planned.plan, planned.wanted, silent)
            assert (await state(world, "other")).cancelled is None
            with pytest.raises(StalePlan, match="sweep other: whether it is cancelled"):
                await remake_plan(world, read_saved(saved))

    asyncio.run(main())


def test_gone_sweep_of_a_merged_branch_is_one_of_main(root: Path) -> None:
    """After a squash, the log has a commit of main as seen; the revision itself still is of the branch."""
    begin(root)
    (root / "monkey.yaml").write_text("project: test\ngit: {branch: main}\n")
    commit(root)
    git(root, "checkout", "-qb", "pr")
    (root / "specs" / "third.yaml").write_text(OTHER.replace("name: other", "name: third").replace("[7", "[6"))
    commit(root)

    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
            git(root, "checkout", "-q", "main")
            assert (await make_plan(world, [], prune=True)).plan.gone == (), "it is not merged yet"
            git(root, "merge", "-q", "--squash", "pr")
            git(root, "commit", "-qm", "squashed")
            await record_seen_commits(world, await apply(world))
            (root / "specs" / "third.yaml").unlink()
            commit(root)
            gone = (await make_plan(world, [], prune=True)).plan.gone
            assert [(one.name, one.pruned) for one in gone] == [("third", True)]

    asyncio.run(main())
