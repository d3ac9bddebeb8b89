"""Adopted results that an apply records for the whole project, whatever it was interrupted by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from monkey.apply.execute import execute_plan
from monkey.apply.planning import make_plan
from monkey.apply.world.world import World
from monkey.errors import ConcurrentApply
from monkey.plan.change import SweepPlan
from monkey.protocol.adoption_log import AdoptionEntry, record_adoptions
from monkey.protocol.sweeps.sweep_log import append_order
from tests.unit.apply.small_project import SPEC, Pen, apply, opened

RENAMED = SPEC.replace("lr", "rate").replace("--rate", "--lr") + "equivalences:\n  - renamed: {lr: rate}\n"


@asynccontextmanager
async def finished(root: Path) -> AsyncIterator[World]:
    """Yield a world in which two of three jobs have finished, and whose spec renames their parameter."""
    async with opened(root) as world:
        planned = await apply(world)
        pen = Pen(world)
        for job in planned.wanted[0].desired.table.ids[:2]:
            await pen.begin(job)
            await pen.end(job)
        (root / "specs" / "small.yaml").write_text(RENAMED)
        yield world


async def plan(world: World) -> SweepPlan:
    return (await make_plan(world, [])).plan.sweeps[0]


async def recorded(world: World) -> list[str]:
    return [item.key for item in await world.at.list(world.keys.adoptions)]


def rename(root: Path) -> None:
    """Give the sweep another name, and take the equivalences away."""
    (root / "specs" / "small.yaml").write_text(RENAMED.partition("equivalences")[0].replace("small", "other"))


def test_what_one_sweep_adopts_another_has(root: Path) -> None:
    async def main() -> None:
        async with finished(root) as world:
            await apply(world)
            assert len(await recorded(world)) == 1
            assert not (await make_plan(world, [])).plan.changes
            rename(root)
            sweep = await plan(world)
            assert sweep.jobs.counts == {"new": 1, "stale": 0, "kept": 2, "removed": 0} and len(sweep.adopted) == 2
            await apply(world)
            assert len(await recorded(world)) == 1, "it was recorded before"

    asyncio.run(main())


def test_an_apply_that_ended_before_the_record_loses_nothing(root: Path) -> None:
    async def main() -> None:
        async with finished(root) as world:
            await apply(world)
            for key in await recorded(world):
                await world.at.delete(key)
            rename(root)
            assert len((await plan(world)).adopted) == 2, "the newest revision of the other sweep says it"
            await apply(world)
            assert len(await recorded(world)) == 1

    asyncio.run(main())


def test_an_apply_that_loses_to_another_records_nothing(root: Path) -> None:
    async def main() -> None:
        async with finished(root) as world:
            planned = await make_plan(world, [])
            await append_order(world.at, world.keys, world.signers, "small", "pause")
            with pytest.raises(ConcurrentApply):
                await execute_plan(world, planned.plan, planned.wanted, lambda what, done: None)
            assert not await recorded(world)

    asyncio.run(main())


def test_a_newer_record_counts_before_the_revision(root: Path) -> None:
    async def main() -> None:
        async with finished(root) as world:
            await apply(world)
            sweep = await plan(world)
            (one, first), (_, second) = sweep.adopted.items()
            await record_adoptions(world.at, world.keys, [AdoptionEntry({one: second})])
            changed = await plan(world)
            assert changed.revises and changed.adopted[one] == second != first
            await record_adoptions(world.at, world.keys, [AdoptionEntry({one: "0" * 16})])
            assert not (await plan(world)).changes, "no such job has finished"

    asyncio.run(main())
