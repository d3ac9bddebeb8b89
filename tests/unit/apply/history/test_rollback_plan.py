"""Rollbacks, and the history that tells of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from monkey.apply.execute import execute_plan
from monkey.apply.history.authorship import name_author
from monkey.apply.history.rollback_plan import plan_rollback
from monkey.apply.history.sweep_history import list_history
from monkey.apply.orders import cancel_sweep, resume_sweep
from monkey.apply.planning import make_plan
from monkey.apply.world.world import World
from monkey.cli.main import run_guarded
from monkey.cli.render.status_lines import format_status
from monkey.cli.terminal.text import Terminal
from monkey.errors import MonkeyError, NotFound
from monkey.protocol.sweeps.sweep_log import read_sweep
from monkey.protocol.sweeps.sweep_state import SweepState
from tests.unit.apply.history.test_spec_places import Story
from tests.unit.apply.small_project import Pen, apply, opened


async def roll_back(world: World, number: int | None = None, reason: str = "it diverges") -> int:
    planned, chosen = await plan_rollback(world, "small", number, reason)
    await execute_plan(world, planned.plan, planned.wanted, lambda what, done: None)
    return chosen


async def state(world: World) -> SweepState:
    return await read_sweep(world.at, world.keys, world.signers, "small")


async def status(world: World) -> str:
    """Return what `monkey status` prints."""
    snapshot = await world.reader().read()
    return "\n".join(format_status("/store", snapshot, list(snapshot.sweeps.values()), Terminal()))


def test_a_rollback_holds_until_a_commit_changes_the_spec(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(root)

    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
            first = (await state(world)).revision
            assert first is not None
            pen = Pen(world)
            await pen.begin(first.table.ids[0])
            await pen.end(first.table.ids[0])
            story.step("edit 2")
            await apply(world)
            (sweep,) = (await plan_rollback(world, "small", None, ""))[0].plan.sweeps
            assert sweep.jobs.kept_states == {"succeeded": 1} and not sweep.upload.objects, "what ran is not run again"
            assert await roll_back(world) == 1
            now = (await state(world)).revision
            assert now is not None and (now.table.ids, now.recipe, now.spec_text) == (
                first.table.ids, first.recipe, first.spec_text
            )  # fmt: skip
            assert (now.restores, now.force, now.git) == (1, "it diverges", story_git(story))
            assert f"small: rolled back to revision 1 by {name_author()}: it diverges; sync and" in await status(world)
            for _ in range(2):
                sweep = (await apply(world)).plan.sweeps[0]
                assert sweep.refusal is not None
                assert sweep.refusal.text == f"rolled back to revision 1 by {name_author()}: it diverges"
                story.step("note")
                monkeypatch.setenv("CI", "true")
            assert (await state(world)).head == 3, "nor by a commit that leaves spec and code alone"
            story.step("edit 3")
            await apply(world)
            assert (await state(world)).revision_at == 4 and (await state(world)).undone is None
            assert "rolled back" not in await status(world)
            with pytest.raises(NotFound, match="no revision 9"):
                await roll_back(world, 9)

    def story_git(story: Story) -> object:
        return {"commit": story.git("rev-parse", "HEAD"), "branch": "main", "dirty": False}

    asyncio.run(main())


def test_a_rollback_of_a_rollback_and_a_reason_that_ends_it(root: Path) -> None:
    story = Story(root)

    async def main() -> None:
        async with opened(root) as world:
            for number in (2, 3):
                await apply(world)
                story.step(f"edit {number}")
            await apply(world)
            assert [await roll_back(world), await roll_back(world, 1)] == [2, 1]
            assert (await make_plan(world, [])).plan.sweeps[0].refusal is not None, "the commit still wants revision 3"
            assert not (await plan_rollback(world, "small", 1, ""))[0].plan.changes
            forced = await make_plan(world, [], force="it was not that")
            await execute_plan(world, forced.plan, forced.wanted, lambda what, done: None)
            now = await state(world)
            assert now.revision is not None and (now.revision.force, now.revision.restores) == ("it was not that", 0)

    asyncio.run(main())


def test_a_rollback_needs_its_code(root: Path) -> None:
    story = Story(root)

    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
            with pytest.raises(MonkeyError, match="no earlier revision that differs"):
                await roll_back(world)
            first = (await state(world)).revision
            story.step("edit 2")
            await apply(world)
            assert first is not None
            (root / ".monkey/store" / world.keys.code(first.recipe.code)).unlink()
            with pytest.raises(MonkeyError, match="is not in the store any more"):
                await roll_back(world)

    asyncio.run(main())


def test_history_tells_of_all_of_it(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    story = Story(root)
    first = story.git("rev-parse", "HEAD")

    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
            await cancel_sweep(world, "small", "too dear")
            await resume_sweep(world, "small")
            (root / "specs/small.yaml").write_text(
                (root / "specs/small.yaml").read_text().replace("[7, 8, 1]", "[7, 9]")
            )
            story.commit("other rates")
            await apply(world)
            await roll_back(world)
            lines = await list_history(world, "small")
            assert [(line.number, line.kind, line.text) for line in lines] == [
                (1, "revision", ""), (2, "cancel", "too dear"), (3, "resume", ""), (4, "revision", ""),
                (5, "revision", "it diverges"),
            ]  # fmt: skip
            assert [line.jobs and tuple(line.jobs) for line in lines] == [(3, 0, 0), None, None, (1, 0, 2), (2, 0, 1)]
            assert {line.author for line in lines} == {name_author()} and all(line.at for line in lines)
            assert lines[0].git is not None and lines[0].git["commit"] == first and lines[4].restores == 1
            with pytest.raises(NotFound):
                await list_history(world, "other")

    asyncio.run(main())
    monkeypatch.chdir(root)
    assert run_guarded(["history", "small"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 6 and "too dear" in shown[2] and "rollback to 1" in shown[5] and first[:10] in shown[1]
    assert run_guarded(["history", "small", "--json"]) == 0
    assert [line["kind"] for line in json.loads(capsys.readouterr().out)][1] == "cancel"
