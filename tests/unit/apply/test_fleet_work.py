"""Fleets and their work: counted again, with the secrets of others; machines and agents in one list."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from monkey.apply.fleet_work import call_for_agents, forecast_work, recount_work
from monkey.apply.inspect.instances import list_instances
from monkey.apply.planning import make_plan
from monkey.apply.watch.sweep_progress import SweepProgress
from monkey.cli.commands.apply import ApplyOrder, _apply
from monkey.cli.render.plan_lines import format_plan
from monkey.cli.terminal.text import Terminal
from monkey.cli.watching import watch_to_end
from monkey.errors import FleetError, MonkeyError
from monkey.fleet.fleet_port import keep_silent
from monkey.fleet.fleet_records import FleetWork, Instance
from monkey.plan.cost import MachineChange
from monkey.plan.text.markdown import format_markdown
from monkey.plan.text.plan_document import serialize_plan
from monkey.spec.job.recipe import JobResources
from tests.unit.apply.small_project import SPEC, Listening, Pen, apply, opened

TOKEN = frozenset({"TOKEN"})


def work(jobs: int, secrets: frozenset[str] = frozenset(), others: frozenset[str] = frozenset()) -> FleetWork:
    """Return the work of so many jobs that ask for what jobs ask for where nothing is said."""
    asked = ((JobResources(), jobs),)
    return FleetWork(jobs, secrets, others, asked=asked, timeouts=frozenset([None]), images={"": asked})


def two_sweeps(root: Path) -> None:
    """Write a second sweep, with a secret, beside the first."""
    text = SPEC.replace("name: small", "name: other", 1).replace("[1, 2, 3]", "[4, 5]")
    (root / "specs" / "other.yaml").write_text(text + "secrets: [TOKEN]\n")


def test_work_is_counted_again_with_what_others_applied(root: Path) -> None:
    async def main() -> None:
        two_sweeps(root)
        async with opened(root, Listening()) as world:
            mine = await make_plan(world, [str(root / "specs/small.yaml")])
            (part,) = mine.plan.fleets
            assert (part.jobs, part.others) == (3, frozenset())
            await apply(world, str(root / "specs/other.yaml"))  # meanwhile, by somebody else
            assert await recount_work(world, mine.plan, part, 0.0) == work(5, others=TOKEN)

    asyncio.run(main())


def test_a_job_that_two_sweeps_have_is_counted_once_by_whoever_counts(root: Path) -> None:
    async def main() -> None:
        twin = root / "specs" / "twin.yaml"
        twin.write_text(SPEC.replace("name: small", "name: twin", 1))
        fleet = Listening()
        async with opened(root, fleet) as world:
            mine = await make_plan(world, [str(root / "specs/small.yaml")])
            await apply(world, str(twin))  # meanwhile, by somebody else
            assert await recount_work(world, mine.plan, mine.plan.fleets[0], 0.0) == work(3)
            await apply(world)
            await call_for_agents(world, "local", "small", keep_silent)
            assert fleet.told == [work(3)] * len(fleet.told)
            view = (await world.reader().read()).sweeps["small"]
            await forecast_work(world, "local", view, None)
            assert fleet.foreseen[-1] == work(3)

    asyncio.run(main())


def test_a_sweep_that_leaves_the_fleet_is_no_work_of_it_any_more(root: Path) -> None:
    async def main() -> None:
        two_sweeps(root)
        text = (root / "monkey.yaml").read_text()
        (root / "monkey.yaml").write_text(text + "providers: {local: {type: local}, there: {type: local}}\n")
        async with opened(root) as world:
            world.fleets = {"local": Listening(), "there": Listening("there")}
            await apply(world)
            moved = root / "specs" / "other.yaml"
            moved.write_text(moved.read_text() + "provider: there\n")
            plan = (await make_plan(world, [])).plan
            counted = {part.fleet: await recount_work(world, plan, part, 0.0) for part in plan.fleets}
        assert counted == {"local": work(3), "there": work(2, TOKEN)}

    asyncio.run(main())


def test_agents_that_left_are_called_again_for_the_work_of_their_fleet_alone(root: Path) -> None:
    async def main() -> None:
        two_sweeps(root)
        other = root / "specs" / "other.yaml"
        other.write_text(other.read_text() + "provider: there\n")
        text = (root / "monkey.yaml").read_text()
        (root / "monkey.yaml").write_text(text + "providers: {local: {type: local}, there: {type: local}}\n")
        fleets = {"local": Listening(answers=[False]), "there": Listening("there", answers=[False])}
        async with opened(root) as world:
            world.fleets = fleets
            await apply(world)
            for fleet in fleets.values():
                fleet.told.clear()
            with pytest.raises(FleetError, match="left 3 times"):
                await watch_to_end(world, ["small", "other"], lambda _: None)
            assert set(map(repr, fleets["local"].told)) == {repr(work(3))}
            assert set(map(repr, fleets["there"].told)) == {repr(work(2, others=TOKEN))}

    asyncio.run(main())


def test_a_call_asks_for_the_secrets_of_its_own_sweep_alone(root: Path) -> None:
    async def main() -> None:
        two_sweeps(root)
        fleet = Listening()
        async with opened(root, fleet) as world:
            await apply(world)
            fleet.told.clear()
            await call_for_agents(world, "local", "small", keep_silent)
            await call_for_agents(world, "local", "other", keep_silent)
        assert fleet.told == [work(5, others=TOKEN), work(5, TOKEN)]

    asyncio.run(main())


def test_jobs_on_machines_that_go_are_counted_and_asked_about(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
        machines = tuple(Instance(f"gpu{n}", (f"one{n}",)) for n in range(4))
        ops = (("delete", ""), ("replace", ""), ("replace", "no right"), ("update", ""))
        changes = tuple(MachineChange(op, f"gpu{n}", "", why) for n, (op, why) in enumerate(ops))
        fleet = Listening(machines=machines, changes=changes)
        async with opened(root, fleet) as world:
            jobs = (await apply(world)).wanted[0].desired.table.ids
            await Pen(world, "local/one0/1").begin(jobs[0])
            await Pen(world, "local/one1/1").begin(jobs[1])
            await Pen(world, "local/one2/1").begin(jobs[2])
            plan = (await make_plan(world, [])).plan
            assert [change.stops for change in plan.fleets[0].machines] == [1, 1, 0, 0], "a hindered one stays"
            assert (plan.released, plan.uprooted) == (0, 2)
            with pytest.raises(MonkeyError, match="applying would stop 2 running jobs on machines that go"):
                await _apply(world, ApplyOrder([], []))
            assert len(fleet.told) == 1, "nothing was applied but the first"

    asyncio.run(main())


def test_machines_and_agents_are_one_list(root: Path) -> None:
    async def main() -> None:
        machines = (Instance("gpu1", ("one",), "kept alive"), Instance("gpu2", ("two",)), Instance("gpu3", ()))
        async with opened(root, Listening(machines=machines)) as world:
            jobs = (await apply(world)).wanted[0].desired.table.ids
            old, new, guest, gone = (Pen(world, f"local/{name}") for name in ("one/1", "one/2", "guest/1", "two/1"))
            old.heart.vitals = lambda: {"draining": True, "idle": [jobs[1]]}
            old.heart.held.add((world.keys.permit_log("small", 1), 1))
            await old.begin(jobs[1])  # claimed ahead
            await old.begin(jobs[0])
            await asyncio.gather(*(pen.heart.beat() for pen in (new, guest)))
            await gone.heart.beat(left=True)
            rows = await list_instances(world)
        assert {(row.machine, row.agent, row.state, row.jobs, row.about) for row in rows} == {
            ("gpu1", "local/one/1", "draining", 1, "kept alive"),
            ("gpu1", "local/one/2", "alive", 0, "kept alive"),
            ("gpu2", "", "silent", 0, ""),
            ("gpu3", "", "not heard of", 0, ""),
            ("guest", "local/guest/1", "alive", 0, "joined by itself"),
        }
        assert {row.machine: row.heard is None for row in rows if not row.agent} == {"gpu2": False, "gpu3": True}

    asyncio.run(main())


def test_only_sweeps_at_work_go_on_detached(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        two_sweeps(root)
        spec = root / "specs" / "small.yaml"
        small = str(spec)
        async with opened(root, Listening()) as world:
            jobs = (await apply(world, small)).wanted[0].desired.table.ids
            pen = Pen(world, "local/one/1")
            for job in jobs:
                await pen.begin(job)
                await pen.end(job)
            await _apply(world, ApplyOrder([], [], yes=True, detach=True))
            assert "Detached: other goes on without" in capsys.readouterr().out
            order, looks = ApplyOrder([small], [], watched=["small"]), list[Sequence[SweepProgress]]()
            await _apply(world, order)
            assert order.watched == [], "an interrupt detaches from nothing"
            await watch_to_end(world, ["small"], looks.append)
            assert looks and not looks[-1][0].unfinished
            spec.write_text(SPEC + "priority: 3\n")
            await _apply(world, ApplyOrder([small], [], detach=True))
            assert capsys.readouterr().out.endswith("Applied; nothing is left to run.\n")

    asyncio.run(main())


def test_machines_whose_provider_is_gone_are_warned_of(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host = {"urn": "urn:pulumi:s::p::ssh:Host::gpu1", "type": "pulumi-python:dynamic/ssh:Host", "id": "gpu1"}
    warning = "`monkey destroy --fleet lab`: monkey.yaml no longer names this provider, and it has machines"

    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
            key = f"{world.keys.machines}lab/state/.pulumi/stacks/test/lab.json"
            for resources in ([], [host]):
                latest = {"manifest": {"version": "v3.232.0"}, "resources": resources}
                text = json.dumps({"version": 3, "checkpoint": {"latest": latest}})
                await world.at.put(key, text.encode())
                plan = (await make_plan(world, [])).plan
                assert plan.warnings == ((warning,) if resources else ()) and not plan.changes
            assert f"! {warning}" in "\n".join(format_plan(plan, Terminal())) and f"! {warning}" in format_markdown(
                plan
            )
            assert serialize_plan(plan)["warnings"] == [warning]
            await _apply(world, ApplyOrder([], [], detach=True))
            assert f"warning: {warning}" in capsys.readouterr().err

    asyncio.run(main())
