"""Applying: what is written, in which order, and what a crash or a rival leaves to be mended."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from monkey.apply.execute import execute_plan
from monkey.apply.planning import make_plan, read_saved, remake_plan
from monkey.apply.world.world import open_world
from monkey.errors import ConcurrentApply, FleetError, MonkeyError, PlanError, SpecError, StalePlan, StoreMissing
from monkey.plan.saved_plan import dump_saved_plan
from monkey.plan.text.lines import format_sweep_plan
from monkey.protocol.entries import ClaimEnd
from monkey.protocol.sweeps.queue_markers import read_queue
from monkey.protocol.sweeps.sweep_log import append_order, read_sweep
from monkey.spec.project.project import load_project
from tests.unit.apply.small_project import SPEC, Pen, StillFleet, apply, opened, write_project


def test_first_apply_begins_the_store_and_leaves_nothing_to_do(root: Path) -> None:
    async def main() -> None:
        fleet = StillFleet()
        async with opened(root, fleet) as world:
            assert world.store is None
            planned = await apply(world)
            assert planned.plan.changes and fleet.asked == [1]
            state = await read_sweep(world.at, world.keys, world.signers, "small")
            assert state.head == 1 and state.revision is not None
            assert len(state.revision.table) == 3 and state.revision.spec_text == SPEC
            assert (await read_queue(world.at, world.keys, "local")).markers == {"small": frozenset({1})}
            assert [item.key for item in await world.at.list("code/")] == [world.keys.code(state.revision.recipe.code)]
            assert not (await make_plan(world, [])).plan.changes
        assert (root / ".monkey" / ".gitignore").read_text() == "*\n"

    asyncio.run(main())


def test_planning_creates_nothing(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            await make_plan(world, [])

    asyncio.run(main())
    assert not (root / ".monkey").exists()


def test_revision_without_its_markers_is_seen_and_mended(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
            await world.at.delete(world.keys.marker("local", "small", 1))
            planned = await make_plan(world, [])
            assert planned.plan.sweeps[0].unmarked == ("local",) and planned.plan.changes
            await execute_plan(world, planned.plan, planned.wanted, lambda what, done: None)
            assert (await read_queue(world.at, world.keys, "local")).markers == {"small": frozenset({1})}
            assert (await read_sweep(world.at, world.keys, world.signers, "small")).head == 1

    asyncio.run(main())


def test_rival_s_revision_wins_and_we_are_told(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
            (root / "specs" / "small.yaml").write_text(SPEC.replace("[1, 2, 3]", "[1, 2, 3, 4]"))
            planned = await make_plan(world, [])
            await append_order(world.at, world.keys, world.signers, "small", "pause")
            with pytest.raises(ConcurrentApply, match="'small'"):
                await execute_plan(world, planned.plan, planned.wanted, lambda what, done: None)
            assert (await read_sweep(world.at, world.keys, world.signers, "small")).paused

    asyncio.run(main())


def test_who_finds_that_a_rival_did_the_same_goes_on(root: Path) -> None:
    async def main() -> None:
        said: list[tuple[str, str]] = []
        async with opened(root) as world:
            ours, theirs = await make_plan(world, []), await make_plan(world, [])
            await world.begin()
            await execute_plan(world, theirs.plan, theirs.wanted, lambda what, done: None)
            await world.at.delete(world.keys.marker("local", "small", 1))
            await execute_plan(world, ours.plan, ours.wanted, lambda what, done: said.append((what, done)))
            state = await read_sweep(world.at, world.keys, world.signers, "small")
            assert state.revision is not None and state.head == 1
            author = state.revision.author
            assert said[-1] == ("small", f"{author} applied the same just now: it is revision 1")
            assert (await read_queue(world.at, world.keys, "local")).markers == {"small": frozenset({1})}, (
                "the rival was cut short there"
            )

            (root / "specs" / "small.yaml").write_text(SPEC + "priority: 3\n")
            theirs = await make_plan(world, [])
            (root / "specs" / "small.yaml").write_text(SPEC + "priority: 4\n")
            ours = await make_plan(world, [])
            await execute_plan(world, theirs.plan, theirs.wanted, lambda what, done: None)
            with pytest.raises(ConcurrentApply, match="'small'"):
                await execute_plan(world, ours.plan, ours.wanted, lambda what, done: None)
            await append_order(world.at, world.keys, world.signers, "small", "pause")
            with pytest.raises(ConcurrentApply, match="'small'"):
                await execute_plan(world, theirs.plan, theirs.wanted, lambda what, done: None)

    asyncio.run(main())


def test_added_value_is_one_new_job_and_a_finished_one_is_kept(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            planned = await apply(world)
            pen, jobs = Pen(world), planned.wanted[0].desired.table.ids
            await pen.begin(jobs[0])
            await pen.end(jobs[0])
            await pen.begin(jobs[1])
            (root / "specs" / "small.yaml").write_text(SPEC.replace("[1, 2, 3]", "[1, 3, 4]"))
            plan = (await make_plan(world, [])).plan
            assert plan.sweeps[0].jobs.counts == {"new": 1, "stale": 0, "kept": 2, "removed": 1}
            assert plan.released == 1, "the job that runs and is no longer wanted"

    asyncio.run(main())


def test_saved_plan_is_applied_once_and_then_refused(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            planned = await make_plan(world, [])
            path = root / "plan.json"
            path.write_text(dump_saved_plan(planned.plan, ["specs/small.yaml"]))
            again = await remake_plan(world, read_saved(path))
            await world.begin()
            await execute_plan(world, again.plan, again.wanted, lambda what, done: None)
            with pytest.raises(StalePlan, match="from 0 to 1: this plan was applied already"):
                await remake_plan(world, read_saved(path))
            (root / "specs" / "small.yaml").unlink()
            with pytest.raises(StalePlan, match="was removed"):
                await remake_plan(world, read_saved(path))

    asyncio.run(main())


def test_saved_plan_of_another_project_is_refused_though_its_specs_are_the_same(root: Path) -> None:
    other = root / "other"
    write_project(other)
    (other / "monkey.yaml").write_text("project: second\n")

    async def main() -> None:
        path = root / "plan.json"
        async with opened(root) as world:
            path.write_text(dump_saved_plan((await make_plan(world, [])).plan, ["specs/small.yaml"]))
        async with opened(other) as world:
            with pytest.raises(PlanError, match="this plan is of project 'test', here is 'second'"):
                await remake_plan(world, read_saved(path))
            (other / "specs" / "small.yaml").unlink()
            with pytest.raises(PlanError, match="of project 'test'"):
                await remake_plan(world, read_saved(path))

    asyncio.run(main())


def test_change_of_other_specs_or_the_schema_makes_nothing_stale(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
            (root / "specs" / "other.yaml").write_text("name: other\ncommand: 'true'\n")
            (root / "specs" / "schema.json").write_text("{}")
            (root / "README.md").write_text("new")
            plan = (await make_plan(world, [str(root / "specs/small.yaml")])).plan
            assert not plan.changes
            (root / "train.py").write_text("print('changed')\n")
            plan = (await make_plan(world, [str(root / "specs/small.yaml")])).plan
            assert plan.sweeps[0].jobs.counts["stale"] == 3
            assert plan.sweeps[0].jobs.stale[0].why == "code changed: train.py"

    asyncio.run(main())


def test_job_that_runs_before_any_heartbeat_says_so_is_not_taken_for_queued(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            jobs = (await apply(world)).wanted[0].desired.table.ids
            living, gone = Pen(world), Pen(world, "local/gone/1")
            await living.heart.beat()
            await living.begin(jobs[2], beat=False)
            await gone.begin(jobs[1], beat=False)
            (root / "specs" / "small.yaml").write_text(SPEC.replace("[1, 2, 3]", "[1]"))
            assert (await make_plan(world, [])).plan.released == 1, "an agent that never beat has no right to run any"
            (root / "train.py").write_text("print('changed')\n")
            assert (await make_plan(world, [])).plan.released == 1

    asyncio.run(main())


def test_jobs_too_large_for_the_machine_are_warned_of(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            assert not (await make_plan(world, [])).plan.sweeps[0].notes
            (root / "specs" / "small.yaml").write_text(SPEC + "resources: {cpus: 64}\n")
            (note,) = (await make_plan(world, [])).plan.sweeps[0].notes
            said = "no machine of local has room for these jobs: one asks for 64 CPUs (it has 2)"
            assert note == f"warning: {said}. Lower `resources:` in the spec"
        async with opened(root, StillFleet(type="gcp")) as world:
            with pytest.raises(FleetError, match="than any machine of its providers has") as caught:
                await make_plan(world, [])
            assert caught.value.hint == "lower resources: in the spec, or rent others: machine_type in monkey.yaml"

    asyncio.run(main())


def test_draws_that_come_out_equal_are_said(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            spec = SPEC.replace("lr: [1, 2, 3]", "lr: {values: [1, 2]}") + "method: random\nrun_cap: 50\n"
            (root / "specs" / "small.yaml").write_text(spec)
            lines = [line.text for line in format_sweep_plan((await make_plan(world, [])).plan.sweeps[0])]
            assert any("the 50 draws of run_cap make 2 jobs" in line for line in lines)

    asyncio.run(main())


def test_provider_that_the_project_lacks(root: Path) -> None:
    (root / "specs" / "small.yaml").write_text(SPEC + "provider: cluster\n")

    async def main() -> None:
        async with opened(root) as world:
            await make_plan(world, [])

    with pytest.raises(SpecError, match=r"specs/small.yaml:6:11: unknown provider 'cluster'"):
        asyncio.run(main())


def test_no_spec_at_all(tmp_path: Path) -> None:
    async def main(*named: str) -> None:
        async with opened(tmp_path) as world:
            await make_plan(world, named)

    (tmp_path / "monkey.yaml").write_text("")
    with pytest.raises(MonkeyError, match="there is no spec in") as caught:
        asyncio.run(main())
    assert "monkey init" in (caught.value.hint or "")
    with pytest.raises(MonkeyError, match=r"there is no spec '/.*/gone.yaml'"):
        asyncio.run(main("gone.yaml"))


@pytest.mark.parametrize(
    ("named", "hint"),
    [
        ("small", "did you mean specs/small.yaml?"),
        ("else", "name a file, such as specs/experiment.yaml; or none, for all"),
    ],
)
def test_a_sweep_named_in_place_of_its_spec(root: Path, named: str, hint: str) -> None:
    async def main() -> None:
        async with opened(root) as world:
            await make_plan(world, [named])

    with pytest.raises(MonkeyError, match=f"there is no spec '/.*/{named}'") as caught:
        asyncio.run(main())
    assert caught.value.hint == hint


def test_store_that_vanished_is_not_begun_anew(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
        store = root / ".monkey" / "store"
        store.rename(root / ".monkey" / "away")
        for empty in (False, True):
            if empty:
                store.mkdir()  # an empty mount point
            with pytest.raises(StoreMissing, match="moved, removed, or its disk is not mounted"):
                async with open_world(load_project(root)):
                    pass
            assert not store.exists() or not any(store.iterdir())
        store.rmdir()
        (root / ".monkey" / "away").rename(store)
        async with opened(root) as world:
            assert not (await make_plan(world, [])).plan.sweeps[0].changes

    asyncio.run(main())


def test_another_store_in_its_place_is_noticed(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
        other = root / "other"
        write_project(other)
        async with opened(other) as world:
            await apply(world)
        (root / ".monkey" / "store").rename(root / ".monkey" / "away")
        (other / ".monkey" / "store").rename(root / ".monkey" / "store")
        with pytest.raises(StoreMissing, match="another one"):
            async with open_world(load_project(root)):
                pass

    asyncio.run(main())


def test_finished_elsewhere_is_not_run_again(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            planned = await apply(world)
            pen, jobs = Pen(world), planned.wanted[0].desired.table.ids
            for job in jobs:
                await pen.begin(job)
                await pen.end(job, ClaimEnd.SUCCEEDED)
            (root / "specs" / "small.yaml").write_text(SPEC.replace("name: small", "name: renamed"))
            sweep = (await make_plan(world, [])).plan.sweeps[0]
            assert sweep.jobs.counts == {"new": 0, "stale": 0, "kept": 3, "removed": 0}
            assert sweep.jobs.elsewhere == {"small": 3}

    asyncio.run(main())
