"""Commits that change nothing: a small entry notes them, and what comes later compares with that."""

from __future__ import annotations

import asyncio
from pathlib import Path

from monkey.apply.execute import execute_plan
from monkey.apply.history.seen_commits import record_seen_commits
from monkey.apply.planning import PlanningResult, make_plan, read_saved, remake_plan
from monkey.apply.world.world import World
from monkey.plan.commits.place import CommitPlace
from monkey.plan.saved_plan import dump_saved_plan
from monkey.protocol.sweeps.sweep_log import append_order, read_sweep
from monkey.protocol.sweeps.sweep_state import SweepState
from tests.unit.apply.history.test_spec_places import Story
from tests.unit.apply.small_project import opened


async def applied(world: World, force: str = "") -> PlanningResult:
    """Plan, apply and note the commit, as the verb does."""
    planned = await make_plan(world, [], force=force)
    await world.begin()
    await execute_plan(world, planned.plan, planned.wanted, lambda what, done: None)
    await record_seen_commits(world, planned)
    return planned


async def state(world: World) -> SweepState:
    return await read_sweep(world.at, world.keys, world.signers, "small")


def test_squash_merge_is_noted_once_and_main_goes_on_from_there(root: Path) -> None:
    story = Story(root)

    async def main() -> None:
        async with opened(root) as world:
            for step in ("branch pr", "edit 2"):
                story.step(step)
            await applied(world)
            for step in ("switch main", "note", "squash pr"):
                story.step(step)
            merged = story.git("rev-parse", "HEAD")
            assert (await applied(world)).plan.sweeps[0].desired.place is CommitPlace.MERGED
            now = await state(world)
            assert now.seen is not None and now.seen.git["commit"] == merged and now.seen.git["branch"] == "main"
            assert (now.head, now.changed_at) == (2, 1)
            await applied(world)
            story.step("note")
            await applied(world)
            assert (await state(world)).head == 2, "once a commit, and not for one that touches neither spec nor code"
            story.step("edit 4")
            assert (await applied(world)).plan.sweeps[0].desired.place is CommitPlace.AHEAD
            assert (await state(world)).revision_at == 3
            story.step("switch pr")
            planned = await applied(world)
            assert planned.plan.sweeps[0].desired.place is CommitPlace.APART and (await state(world)).head == 3

    asyncio.run(main())


def test_late_run_of_what_was_undone_since_is_refused(root: Path) -> None:
    """From A to B, and back to A: only the commit that was seen says that B is older."""
    story = Story(root)

    async def main() -> None:
        async with opened(root) as world:
            await applied(world)
            story.step("edit 2")
            late = story.git("rev-parse", "HEAD")
            story.step("edit 1")
            assert not (await applied(world)).plan.changes
            story.git("checkout", "-q", late)
            planned = await applied(world)
            assert planned.plan.sweeps[0].desired.place is CommitPlace.BEHIND
            assert planned.plan.sweeps[0].refusal is not None and (await state(world)).revision_at == 1

    asyncio.run(main())


def test_a_commit_of_one_laptop_is_not_noted(root: Path, tmp_path: Path) -> None:
    story = Story(root)
    story.git("clone", "-q", "--bare", str(root), str(tmp_path / "forge"))
    story.git("remote", "add", "origin", str(tmp_path / "forge"))
    story.git("fetch", "-q", "origin")

    async def main() -> None:
        async with opened(root) as world:
            await applied(world)
            story.step("edit 2")
            story.step("edit 1")
            await applied(world)
            assert (await state(world)).head == 1, "it may be rewritten before anyone else has it"
            story.git("checkout", "-q", "HEAD^")
            assert (await make_plan(world, [])).plan.sweeps[0].refusal is None, "for all others, this is the newest"
            story.git("checkout", "-q", "main")
            story.git("push", "-q", "origin", "main")
            await applied(world)
            assert (await state(world)).head == 2

    asyncio.run(main())


def test_a_commit_that_is_seen_leaves_saved_plans_and_other_applies_be(root: Path, tmp_path: Path) -> None:
    story = Story(root)

    async def main() -> None:
        async with opened(root) as world:
            await applied(world)
            story.step("edit 2")
            planned = await make_plan(world, [])
            path = tmp_path / "plan.json"
            path.write_text(dump_saved_plan(planned.plan, ["specs/small.yaml"]))
            story.step("edit 1")
            await applied(world)
            assert (await state(world)).head == 2
            story.step("edit 2")
            again = await remake_plan(world, read_saved(path))
            await execute_plan(world, planned.plan, again.wanted, lambda what, done: None)
            assert (await state(world)).revision_at == 3, "it follows what was seen since it was planned"

    asyncio.run(main())


def test_a_cancelled_sweep_stays_so_when_a_commit_is_seen(root: Path) -> None:
    story = Story(root)

    async def main() -> None:
        async with opened(root) as world:
            await applied(world)
            await append_order(world.at, world.keys, world.signers, "small", "cancel", reason="too dear")
            story.step("edit 2")
            story.step("edit 1")
            await applied(world)
            now = await state(world)
            assert now.seen is not None and now.cancelled == "too dear"
            assert not (await make_plan(world, [])).plan.changes, "and no fleet is told of work"

    asyncio.run(main())


def test_a_branch_that_leaves_the_sweep_alone_does_not_hold_back_main(root: Path) -> None:
    story = Story(root)

    async def main() -> None:
        async with opened(root) as world:
            await applied(world)
            for step in ("branch pr", "note"):
                story.step(step)
            await applied(world)
            assert (await state(world)).head == 1, "main has not merged it, and may never do"
            for step in ("switch main", "edit 2"):
                story.step(step)
            assert (await applied(world)).plan.sweeps[0].refusal is None
            assert (await state(world)).revision_at == 2

    asyncio.run(main())
