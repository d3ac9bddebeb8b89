"""Machines that gave up before they could begin: no unattended apply rents another for the same."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from monkey.apply.orders import cancel_sweep
from monkey.apply.planning import make_plan
from monkey.apply.sync.unattended_apply import UnattendedResult, apply_unattended
from monkey.apply.world.world import World
from monkey.cli.commands.apply import ApplyOrder, _apply
from monkey.fleet.boot_failures import CUT_OFF, BootFailure, forget_boot_failures
from tests.unit.apply.paper import PaperFleet, renting, write_rented
from tests.unit.apply.small_project import Pen

WHY = "the agent failed: error: no job began for 10 minutes: /data is not mounted"


def keep(what: str, done: str) -> None:
    """Say nothing."""


async def give_up(world: World, fleet: PaperFleet, why: str = WHY, name: str = "i-1", at: float = 1.0) -> None:
    """End all machines; one leaves a note, as `note_end` writes it."""
    fleet.file.write_text(json.dumps({**fleet.rented(), "machines": 0}))
    note = {"machine": name, "why": why, "at": at, "log": []}
    await world.at.put(f"{world.keys.boots}cloud/{name}", json.dumps(note).encode())


def test_machines_that_can_never_begin_are_not_rented_again_and_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rented(tmp_path, more=", max_cost: 100")

    async def main() -> None:
        async with renting(tmp_path) as (world, fleet):
            assert await apply_unattended(world, keep) == UnattendedResult()
            await give_up(world, fleet)
            for _ in range(2):
                held = (await apply_unattended(world, keep)).held
                assert fleet.rented()["machines"] == 0 and [*held] == ["small"]
                assert WHY in held["small"].why and not held["small"].decided
            world.unattended = True  # as in CI
            assert await _apply(world, ApplyOrder([], [], yes=True, detach=True)) == 1
            assert fleet.rented()["machines"] == 0 and WHY in capsys.readouterr().err
            world.unattended = False
            assert (await make_plan(world, [])).plan.rented, "a person may"
            write_rented(tmp_path, "10h", ", max_cost: 100")
            assert not (await apply_unattended(world, keep)).held, "it was revised"
            assert fleet.rented()["machines"] == 3
            await give_up(world, fleet)
            assert (await apply_unattended(world, keep)).held
            await forget_boot_failures(world.at, world.keys.boots, "cloud")  # as a person's apply does
            assert not (await apply_unattended(world, keep)).held and fleet.rented()["machines"] == 3

    asyncio.run(main())


def test_machines_that_only_lost_touch_are_rented_again(tmp_path: Path) -> None:
    write_rented(tmp_path, more=", max_cost: 100")

    async def main() -> None:
        async with renting(tmp_path) as (world, fleet):
            await apply_unattended(world, keep)
            await give_up(world, fleet, f"{CUT_OFF} 121 s")
            assert await apply_unattended(world, keep) == UnattendedResult() and fleet.rented()["machines"] == 3
            await give_up(world, fleet)
            await Pen(world, "cloud/i-2/1").heart.beat()
            assert await apply_unattended(world, keep) == UnattendedResult(), "another machine could begin"

    asyncio.run(main())


def test_only_the_newest_note_of_machines_that_ran_nothing_keeps_others_from_being_rented(tmp_path: Path) -> None:
    write_rented(tmp_path, more=", max_cost: 100")

    async def main() -> None:
        async with renting(tmp_path) as (world, fleet):
            jobs = (await make_plan(world, [])).wanted[0].desired.table.ids
            now = time.time()

            async def is_rented() -> bool:
                held = (await apply_unattended(world, keep)).held
                assert bool(held) is not bool(fleet.rented()["machines"])
                return not held

            assert await is_rented()
            await give_up(world, fleet, name="i-3")
            await give_up(world, fleet, f"{CUT_OFF} 121 s", at=2.0)
            assert await is_rented(), "one that was cut off later could begin"
            await give_up(world, fleet, name="i-4", at=3.0)
            assert not await is_rented(), "none was heard since"
            waited = Pen(world, "cloud/i-2/1")
            await waited.heart.beat()
            await waited.heart.beat(left=True)
            assert await is_rented(), "another was heard later"
            await give_up(world, fleet, name="i-2", at=now + 60)
            assert not await is_rented(), "it was heard, and waited for its mount: it ran nothing"
            await waited.begin(jobs[0])
            await waited.end(jobs[0])
            await waited.heart.beat(left=True)
            assert await is_rented(), "it failed after a job"

    asyncio.run(main())


def test_notes_are_read_once_and_only_where_machines_would_be_rented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rented(tmp_path, more=", max_cost: 100")
    read, boots = [], World.boots

    async def count(world: World) -> list[BootFailure]:
        read.append(world)
        return await boots(world)

    async def main() -> None:
        async with renting(tmp_path) as (world, fleet):
            for _ in range(2):
                await apply_unattended(world, keep)
            assert fleet.rented()["machines"] == 3 and not read, "nothing is rented again"
            await give_up(world, fleet)
            other = tmp_path / "specs" / "other.yaml"
            other.write_text((tmp_path / "specs" / "small.yaml").read_text().replace("small", "other"))
            await cancel_sweep(world, "small", "enough")
            world.unattended = True  # what a person cancelled stays so
            write_rented(tmp_path, "10h", ", max_cost: 100")
            assert [*(await apply_unattended(world, keep)).held] == ["small"] and fleet.rented()["machines"] == 3
            await give_up(world, fleet)
            read.clear()
            assert (await apply_unattended(world, keep)).held["other"].why.count(WHY) == 1
            assert len(read) == 1, "two plans were made"

    monkeypatch.setattr(World, "boots", count)
    asyncio.run(main())
