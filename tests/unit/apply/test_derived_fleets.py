"""Machines that specs choose of a provider: whose limit they share, and what a plan and orders do with their fleets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from monkey.apply.execute import execute_plan
from monkey.apply.inspect.fleet_audit import (
    list_written_fleets,
    open_derived_fleets,
    plan_unwanted_fleets,
    warn_of_unlisted_fleets,
)
from monkey.apply.orders import cancel_sweep, extend_sweep
from monkey.apply.planning import make_plan, remake_plan
from monkey.apply.sync.unattended_apply import apply_unattended
from monkey.apply.world.fleets import FleetTable
from monkey.apply.world.world import World, open_world
from monkey.cli.render.plan_lines import format_plan
from monkey.cli.review.approved_apply import ApprovedApply
from monkey.cli.terminal.text import Terminal
from monkey.errors import PlanError
from monkey.fleet.fleet_port import Fleet
from monkey.plan.change import Plan
from monkey.plan.digest import compute_plan_digest
from monkey.plan.saved_plan import dump_saved_plan, parse_saved_plan
from monkey.protocol.sweeps.sweep_log import append_revision, read_sweep
from monkey.spec.job.expires import Expiry
from monkey.spec.project.project import load_project
from monkey.spec.project.provider import Provider
from monkey_stacks.engine.state import spell_state_key
from monkey_stacks.locking.state_lock import LockHolders
from tests.git_command import git
from tests.signing import make_signers
from tests.unit.apply.paper import PaperFleet, write_rented
from tests.unit.apply.small_project import SPEC, StillFleet, apply

PRICES = ", price: {paper.large: 1.01, paper.huge: 2.02}, max_cost: 150}}"
FLEET = "cloud..paper.huge"


def write(root: Path, name: str, provider: str, expires: str = "12h") -> None:
    """Write a spec that runs on this provider."""
    text = SPEC.replace("small", name).replace("train.py", f"train.py {name}")
    (root / "specs" / f"{name}.yaml").write_text(f"{text}provider: {provider}\nexpires: {expires}\n")


@asynccontextmanager
async def renting(root: Path) -> AsyncIterator[World]:
    """Open the project at `root` with clouds of paper, each fleet with a file of its own."""
    async with open_world(load_project(root)) as world:

        def open_fleet(name: str, of: Provider) -> Fleet:
            if of.cloud is None:
                return StillFleet(name, answers=[False])
            return PaperFleet(name=name, cloud=of.cloud, file=root.with_name(f"{root.name}.{name}"))

        world.fleets = FleetTable(world.project.providers, open_fleet)
        yield world


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a project with a sweep on the provider, and another on larger machines of it."""
    write_rented(tmp_path)
    text = (tmp_path / "monkey.yaml").read_text()
    (tmp_path / "monkey.yaml").write_text(text.replace(", price: 1.01}", PRICES.replace("}}", "}")))
    write(tmp_path, "big", "{name: cloud, instance_type: paper.huge}")
    return tmp_path


def test_fleets_of_one_provider_share_its_limit(root: Path) -> None:
    async def main() -> None:
        async with renting(root) as world:
            plan = (await make_plan(world, [])).plan
            assert [part.fleet for part in plan.fleets] == [FLEET, "cloud"]
            costs = {part.fleet: part.cost.total for part in plan.fleets if part.cost}
            assert costs == {FLEET: 96.96, "cloud": 48.48}
            write(root, "big", "{name: cloud, instance_type: paper.huge}", "13h")
            message = r"provider 'cloud': expected at most \$150.00 .*, found at most \$153.52 for all of its fleets "
            with pytest.raises(PlanError, match=message + r"\(cloud: at most 4 × .*; cloud..paper.huge: at most 4"):
                await make_plan(world, [])
            write(root, "big", "{name: cloud, instance_type: paper.huge}")
            await apply(world)
            # A plan of one spec counts what the others have already.
            write(root, "small", "cloud", "14h")
            with pytest.raises(PlanError, match=r"found at most \$153.5\d for all of its fleets"):
                await make_plan(world, [str(root / "specs" / "small.yaml")])
            view = (await world.reader().read()).sweeps["big"]
            with pytest.raises(PlanError, match="for all of its fleets"):
                await extend_sweep(world, "big", Expiry(after=3600.0), lambda costs: None)
            assert view.active

    asyncio.run(main())


def commit(root: Path) -> str:
    """Commit all of the project; return the commit."""
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a change")
    return git(root, "rev-parse", "HEAD")


async def apply_as_stranger(world: World, name: str) -> None:
    """Have a key that nobody trusts sign a sweep like `name`, which is cancelled here."""
    state = await read_sweep(world.at, world.keys, world.signers, name)
    assert state.revision is not None
    await cancel_sweep(world, name, "for another")
    theirs = replace(state.revision, sweep="theirs")
    await append_revision(world.at, world.keys, make_signers(2), theirs, 0)


def test_a_stranger_s_sweep_counts_for_no_limit(root: Path) -> None:
    async def main() -> None:
        async with renting(root) as world:
            await apply(world)
            await apply_as_stranger(world, "big")
            write(root, "small", "cloud", "14h")
            # $56.56; the stranger's sweep, which runs on no machine of ours, would add $96.96 of $150.
            plan = (await make_plan(world, [str(root / "specs" / "small.yaml")])).plan
            assert [part.fleet for part in plan.fleets] == ["cloud"] and plan.changes

    asyncio.run(main())


def test_a_refused_sweep_counts_for_the_limit_and_a_pruned_one_does_not(root: Path) -> None:
    (root / ".gitignore").write_text(".monkey/\n")
    git(root, "init", "-q")
    before = commit(root)
    big = root / "specs" / "big.yaml"

    async def main() -> None:
        async with renting(root) as world:
            big.write_text(big.read_text().replace("[1, 2, 3]", "[1, 2, 3, 4]"))
            after = commit(root)
            await apply(world, str(big))
            git(root, "checkout", "-q", before)
            write(root, "small", "cloud", "14h")
            with pytest.raises(PlanError, match=r"found at most \$153.5\d for all of its fleets"):
                await make_plan(world, [])  # it refuses `big`, which continues all the same
            git(root, "checkout", "-qf", "main")
            assert git(root, "rev-parse", "HEAD") == after
            big.unlink()
            write(root, "small", "cloud", "14h")
            with pytest.raises(PlanError, match=r"found at most \$153.5\d for all of its fleets"):
                await make_plan(world, [])
            plan = (await make_plan(world, [], prune=True)).plan
            assert [one.name for one in plan.gone if one.pruned] == ["big"] and plan.changes

    asyncio.run(main())


def test_what_a_spec_chose_is_known_when_no_spec_asks_for_it(root: Path) -> None:
    async def main() -> None:
        async with renting(root) as world:
            await apply(world)
            await world.at.put(f"{world.keys.machines}{FLEET}/state/x", b"written by an apply")
            await world.at.put(f"{world.keys.machines}gone..paper.huge/state/x", b"of a provider that is gone")
        (root / "specs" / "big.yaml").unlink()
        async with renting(root) as world:
            assert FLEET not in [*world.fleets]
            assert [fleet.name for fleet in await open_derived_fleets(world)] == [FLEET]
            assert [*world.fleets] == ["cloud", FLEET]
            assert isinstance(found := world.fleet(FLEET), PaperFleet) and found.cloud.types == ("paper.huge",)
            assert await warn_of_unlisted_fleets(world, await list_written_fleets(world)) == ()

    asyncio.run(main())


def test_a_whole_plan_removes_a_fleet_that_no_spec_asks_for_once_it_has_no_machines(root: Path) -> None:
    files = {name: root.with_name(f"{root.name}.{name}") for name in ("cloud", FLEET)}

    async def main() -> None:
        async with renting(root) as world:
            await apply(world)
            await world.at.put(f"{world.keys.machines}{FLEET}/engine.json", b"{}")
            write(root, "big", "cloud")
            moving = (await apply(world)).plan
            assert not [part for part in moving.fleets if part.unwanted]
            waits = f"{FLEET}: no spec asks for its 3 machines any more; they end when they have no work, and a later"
            assert waits in "".join(moving.warnings) and files[FLEET].exists()

            files[FLEET].write_text('{"machines": 0, "until": null}')
            assert not (await make_plan(world, [str(root / "specs" / "big.yaml")])).plan.changes, "of all specs alone"
            plan = (await make_plan(world, [])).plan
            [part] = [part for part in plan.fleets if part.unwanted]
            assert (part.fleet, part.changes, part.rents, plan.changes) == (FLEET, True, False, True)
            shown = "\n".join(format_plan(plan, Terminal(120)))
            assert f"- {FLEET}/group: no spec asks for these machines any more" in shown
            assert compute_plan_digest(plan) == compute_plan_digest(replace(plan, fleets=plan.fleets[:-1]))

            # Another apply asks for its machines between plan and apply.
            files[FLEET].write_text('{"machines": 1, "until": null}')
            await execute_plan(world, plan, (), lambda what, done: None)
            assert files[FLEET].exists()
            files[FLEET].write_text('{"machines": 0, "until": null}')
            await apply(world)
            assert not files[FLEET].exists() and files["cloud"].exists()

    asyncio.run(main())


async def leave(world: World, root: Path) -> None:
    """Apply all, and have the fleet that `big` chose be without work, and its machines gone."""
    await apply(world)
    await world.at.put(f"{world.keys.machines}{FLEET}/engine.json", b"{}")
    await cancel_sweep(world, "big", "enough")
    (root / "specs" / "big.yaml").unlink()
    root.with_name(f"{root.name}.{FLEET}").write_text('{"machines": 0, "until": null}')


def test_a_saved_plan_removes_the_fleets_that_it_shows_and_no_others(root: Path) -> None:
    async def main() -> None:
        async with renting(root) as world:
            await leave(world, root)
            planned = await make_plan(world, [])
            shown = planned.plan
            assert [part.fleet for part in shown.unwanted] == [FLEET]
            nobody: Any = None
            narrowed = await ApprovedApply(nobody, nobody, None).narrow(world, planned, ())
            assert narrowed.plan.unwanted == shown.unwanted, "they go without consent"
            silent, saved = (
                parse_saved_plan(dump_saved_plan(plan, ["specs/small.yaml"]))
                for plan in (shown.with_fleets(shown.fleets[:-1]), shown)
            )
            assert not (await remake_plan(world, silent)).plan.changes
            again = await remake_plan(world, saved)
            await execute_plan(world, again.plan, again.wanted, lambda what, done: None)
            assert not root.with_name(f"{root.name}.{FLEET}").exists()

    asyncio.run(main())


def test_an_unattended_apply_that_holds_a_sweep_removes_unwanted_fleets_all_the_same(root: Path) -> None:
    config = (root / "monkey.yaml").read_text().replace(", max_cost: 150", "")
    (root / "monkey.yaml").write_text(f"{config}  local: {{type: local}}\n")
    write(root, "calm", "local")

    async def main() -> None:
        async with renting(root) as world:
            await leave(world, root)
            write(root, "small", "cloud", "20h")
            assert [*(await apply_unattended(world, lambda what, done: None)).held] == ["small"]
            assert not root.with_name(f"{root.name}.{FLEET}").exists()

    asyncio.run(main())


def test_a_fleet_stays_as_long_as_another_s_sweep_needs_it(root: Path) -> None:
    async def main() -> None:
        async with renting(root) as world:
            await apply(world)
            await world.at.put(f"{world.keys.machines}{FLEET}/engine.json", b"{}")
            root.with_name(f"{root.name}.{FLEET}").write_text('{"machines": 0, "until": null}')
            (root / "specs" / "big.yaml").unlink()  # as in a branch that does not have it
            assert not (await make_plan(world, [])).plan.changes
            await cancel_sweep(world, "big", "enough")
            [part] = [part for part in (await make_plan(world, [])).plan.fleets if part.unwanted]
            assert part.fleet == FLEET

    asyncio.run(main())


def test_a_state_that_cannot_be_read_hinders_no_plan(root: Path) -> None:
    async def main() -> None:
        async with renting(root) as world:
            await apply(world)
            key = spell_state_key("test", "cloud..m5.large")
            await world.at.put(f"{LockHolders('test', 'cloud..m5.large').state}{key}", b"no JSON")
        async with open_world(load_project(root)) as world:  # the real fleet of AWS, which reads its state
            plan = (await plan_unwanted_fleets(world, Plan(()), None, await list_written_fleets(world))).warnings
            assert (
                "cloud..m5.large: no spec asks for its machines any more, and whether it has some is not known"
                in "".join(plan)
            )

    asyncio.run(main())
