"""An apply that no person watches: what it rents, when it ends, and who comes first."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest

from monkey.apply.orders import cancel_sweep
from monkey.apply.planning import make_plan
from monkey.apply.sync.unattended_apply import HeldSweep, UnattendedLimits, UnattendedResult, apply_unattended
from monkey.apply.world.world import World
from monkey.cli.commands.apply import ApplyOrder, _apply
from monkey.errors import PlanError
from monkey.plan.gone_sweeps import GoneSweep
from monkey.protocol.sweeps.sweep_log import list_sweeps, read_sweep
from tests.git_command import git
from tests.unit.apply.paper import renting, write_rented
from tests.unit.apply.small_project import SPEC, Pen, apply, opened, write_project


def keep(what: str, done: str) -> None:
    """Say nothing."""


def test_machines_are_rented_within_a_limit_and_never_without(tmp_path: Path) -> None:
    async def main() -> tuple[UnattendedResult, int]:
        async with renting(tmp_path) as (world, fleet):
            return await apply_unattended(world, keep), fleet.rented()["machines"]

    write_rented(tmp_path)
    result, machines = asyncio.run(main())
    assert machines == 0 and result.whole
    assert result.held == {
        "small": HeldSweep("would rent machines of provider 'cloud', which has no `max_cost:` in monkey.yaml")
    }
    write_rented(tmp_path, more=", max_cost: 10")
    with pytest.raises(PlanError, match=r"max_cost in monkey\.yaml"):
        asyncio.run(main())
    write_rented(tmp_path, more=", max_cost: 100")
    assert asyncio.run(main()) == (UnattendedResult(), 3)


LACK = "small: its image cannot be run: this machine has none of podman, docker"


async def leave_machine(world: World, name: str, unfit: list[str]) -> None:
    """Have an agent come to the fleet, and leave it; `unfit`: the sweeps of which it could run no job."""
    pen = Pen(world, f"cloud/{name}/1")
    number = (await read_sweep(world.at, world.keys, world.signers, "small")).revision_at
    pen.heart.vitals = lambda: {"alert": LACK, "unfit": unfit, "unfit_revisions": dict.fromkeys(unfit, number)}
    await pen.heart.beat()
    await pen.heart.beat(left=True)


def test_machines_that_could_run_nothing_are_not_rented_again_and_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rented(tmp_path, more=", max_cost: 100")

    async def main() -> None:
        async with renting(tmp_path) as (world, fleet):
            assert await apply_unattended(world, keep) == UnattendedResult()
            await leave_machine(world, "i-1", [])
            await leave_machine(world, "i-2", ["small"])

            def empty() -> None:
                fleet.file.write_text(json.dumps({**fleet.rented(), "machines": 0}))  # as idle machines leave it

            empty()
            for _ in range(2):
                held = (await apply_unattended(world, keep)).held
                assert fleet.rented()["machines"] == 0 and [*held] == ["small"]
                assert LACK in held["small"].why and not held["small"].decided
            world.unattended = True  # as in CI
            assert await _apply(world, ApplyOrder([], [], yes=True, detach=True)) == 1
            assert fleet.rented()["machines"] == 0 and LACK in capsys.readouterr().err
            world.unattended = False
            assert (await make_plan(world, [])).plan.rented, "a person may"
            other = tmp_path / "specs" / "other.yaml"
            other.write_text((tmp_path / "specs" / "small.yaml").read_text().replace("small", "other"))
            other.write_text(other.read_text().replace("[1, 2, 3]", "[7]"))
            assert await apply_unattended(world, keep) == UnattendedResult(), "another sweep may fit"
            assert fleet.rented()["machines"] == 4
            await cancel_sweep(world, "other", "enough")
            other.unlink()
            empty()
            assert [*(await apply_unattended(world, keep)).held] == ["small"]
            write_rented(tmp_path, "10h", ", max_cost: 100")
            assert not (await apply_unattended(world, keep)).held and fleet.rented()["machines"] == 3, "it was revised"

    asyncio.run(main())


def test_it_ends_between_sweeps(tmp_path: Path) -> None:
    write_project(tmp_path)
    (tmp_path / "specs" / "zweite.yaml").write_text(SPEC.replace("small", "zweite"))
    said: list[str] = []

    async def main() -> list[str]:
        async with opened(tmp_path) as world:
            result = await apply_unattended(
                world, lambda what, done: said.append(done), lambda: "revision 1 appended" in said
            )
            assert not result.whole
            state = await read_sweep(world.at, world.keys, world.signers, "small")
            assert state.revision is not None
            return await list_sweeps(world.at, world.keys)

    assert asyncio.run(main()) == ["small"]


def test_another_apply_that_comes_first_is_met_by_a_new_plan(tmp_path: Path) -> None:
    write_project(tmp_path)
    spec, came = tmp_path / "specs" / "small.yaml", list[str]()

    async def rival() -> None:
        async with opened(tmp_path) as world:
            await apply(world)

    def come_first() -> bool:
        """Apply something else between the plan and its execution, where it is asked whether to stop."""
        if not came:
            came.append("first")
            spec.write_text(SPEC.replace("[1, 2, 3]", "[1, 5]"))
            thread = threading.Thread(target=lambda: asyncio.run(rival()))
            thread.start()
            thread.join()
        return False

    async def main() -> None:
        async with opened(tmp_path) as world:
            await apply(world)
            spec.write_text(SPEC.replace("[1, 2, 3]", "[1, 2, 3, 4]"))
            assert await apply_unattended(world, keep, come_first) == UnattendedResult()
            state = await read_sweep(world.at, world.keys, world.signers, "small")
            assert came and state.revision is not None
            assert state.revision_at == 2 and len(state.revision.table) == 2

    asyncio.run(main())


def test_what_a_person_cancelled_stays_so(tmp_path: Path) -> None:
    write_project(tmp_path)

    async def main() -> None:
        async with opened(tmp_path) as world:
            await apply(world)
            await cancel_sweep(world, "small", "too dear")
            (tmp_path / "specs" / "small.yaml").write_text(SPEC.replace("[1, 2, 3]", "[1, 2, 3, 4]"))
            world.unattended = True
            held = (await apply_unattended(world, keep)).held["small"]
            assert held.decided and held.why.startswith("stays cancelled by ") and "too dear" in held.why
            assert len((await read_sweep(world.at, world.keys, world.signers, "small")).revision.table) == 3

    asyncio.run(main())


def test_a_sweep_whose_spec_is_gone_is_named_unless_it_is_cancelled(tmp_path: Path) -> None:
    write_project(tmp_path)
    (tmp_path / ".gitignore").write_text(".monkey/\n")
    other = tmp_path / "specs" / "other.yaml"
    other.write_text(SPEC.replace("small", "other"))

    def commit() -> None:
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-qm", "a change")

    async def main() -> None:
        async with opened(tmp_path) as world:
            assert await apply_unattended(world, keep) == UnattendedResult()
            other.unlink()
            commit()
            [gone] = (await apply_unattended(world, keep)).gone
            assert gone == GoneSweep("other", "specs/other.yaml", 1, 0, 3)
            assert await apply_unattended(world, keep, limits=UnattendedLimits(prune=True)) == UnattendedResult()

    git(tmp_path, "init", "-q")
    commit()
    asyncio.run(main())
