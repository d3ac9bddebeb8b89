"""Fleets whose agents left with work undone: they are called again, each by its own count."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from monkey.apply.orders import cancel_sweep
from monkey.apply.watch.fleet_calls import GIVE_UP_AFTER
from monkey.apply.watch.startup import wait_for_agents
from monkey.apply.watch.sweep_progress import SweepProgress, WaitOutcome
from monkey.apply.world.world import World
from monkey.errors import FleetError
from monkey.fleet.fleet_port import Recount, Say
from monkey.fleet.fleet_records import FleetWork
from monkey.protocol.status.agent_views import SweepView
from monkey.protocol.status.store_snapshot import StoreSnapshot
from monkey.store.content.upload_progress import Begin, show_no_progress
from tests.unit.apply.small_project import Pen, StillFleet, StillRentedFleet, apply, opened
from tests.unit.apply.watch.watch_steps import Steps, watch


class RefusedFleet(StillFleet):
    """One whose cloud gives nothing: each time that it is asked, it says why."""

    async def converge(
        self, work: FleetWork, say: Say, recount: Recount | None = None, bars: Begin = show_no_progress
    ) -> None:
        """Refuse."""
        await super().converge(work, say, recount)
        raise FleetError(f"the quota of {self.name!r} is used up")


async def wait() -> None:
    """Let a second pass."""


async def begin_with(world: World, *fleets: StillFleet) -> list[str]:
    """Apply, as if the agents of these two fleets came and left; return the jobs."""
    jobs = (await apply(world)).wanted[0].desired.table.ids
    world.fleets = {fleet.name: fleet for fleet in fleets}
    return list(jobs)


async def finish(pen: Pen, *jobs: str) -> None:
    """Have an agent run these jobs."""
    for job in jobs:
        await pen.begin(job)
        await pen.end(job)


def write_two_fleets(root: Path) -> None:
    """Have the sweep run on two fleets."""
    (root / "monkey.yaml").write_text("project: test\nproviders: {local: {type: local}, lab: {type: local}}\n")
    spec = root / "specs" / "small.yaml"
    spec.write_text(spec.read_text() + "provider: [lab, local]\n")


def list_troubles(seen: list[tuple[StoreSnapshot | None, list[SweepProgress], str]]) -> list[str]:
    """Return what the watch said of fleets that were given up, look by look."""
    return [one.trouble for _, progress, _ in seen for one in progress]


def test_agent_that_left_with_work_undone_is_started_again_and_at_last_given_up(root: Path) -> None:
    async def main() -> None:
        fleet = StillFleet(answers=[False])
        async with opened(root, fleet) as world:
            await apply(world)
            fleet.count, fleet.asked = 0, []
            with pytest.raises(FleetError, match=f"left {GIVE_UP_AFTER} times"):
                await watch(world, Steps(), []).run()
            assert fleet.asked == [1] * GIVE_UP_AFTER

    asyncio.run(main())


def test_a_broken_fleet_is_given_up_alone(root: Path) -> None:
    async def main() -> None:
        broken = StillFleet("lab", answers=[False])
        healthy = StillFleet(answers=[True] * 6 + [False, True])
        async with opened(root, healthy) as world:
            world.fleets = {"lab": broken, "local": healthy}
            jobs = await begin_with(world, broken, healthy)
            healthy.count, healthy.asked, broken.count, broken.asked = 0, [], 0, []
            pen = Pen(world)
            steps = Steps(*[wait] * 8, *[lambda job=job: finish(pen, job) for job in jobs])
            seen: list[tuple[StoreSnapshot | None, list[SweepProgress], str]] = []
            assert [one.wait for one in await watch(world, steps, seen).run()] == [WaitOutcome.SUCCEEDED]
            assert healthy.asked == [1], "the other fleet used up its calls"
            assert broken.asked == [1] * GIVE_UP_AFTER, "what another fleet finishes is not its own"
            assert any("'lab' left" in told for told in list_troubles(seen))

    write_two_fleets(root)
    asyncio.run(main())


def test_two_fleets_that_are_asked_in_turn_are_both_given_up(root: Path) -> None:
    async def main() -> None:
        # As clouds do: asked again too soon, they say that machines are on their way.
        lab = StillFleet("lab", answers=[False, True] * 60)
        local = StillFleet(answers=[True, False] * 60)
        async with opened(root, local) as world:
            world.fleets = {"lab": lab, "local": local}
            await begin_with(world, lab, local)
            with pytest.raises(FleetError, match=f"'lab' left {GIVE_UP_AFTER} times"):
                await watch(world, Steps(), []).run()

    write_two_fleets(root)
    asyncio.run(main())


def test_a_fleet_that_gets_no_machine_is_asked_once_and_says_why(root: Path) -> None:
    async def main() -> None:
        refused, healthy = RefusedFleet("lab", answers=[False]), StillFleet()
        async with opened(root, healthy) as world:
            world.fleets = {"lab": StillFleet("lab"), "local": healthy}
            jobs = await begin_with(world, refused, healthy)
            pen, late = Pen(world), Pen(world, "lab/late/1")
            steps = Steps(*[wait] * 8, late.heart.beat, *[lambda job=job: finish(pen, job) for job in jobs])
            seen: list[tuple[StoreSnapshot | None, list[SweepProgress], str]] = []
            assert [one.wait for one in await watch(world, steps, seen).run()] == [WaitOutcome.SUCCEEDED]
            assert set(list_troubles(seen)) == {"", "the quota of 'lab' is used up"}
            assert refused.asked == [1, 1], "again only once an agent of it was heard"

    write_two_fleets(root)
    asyncio.run(main())


def test_a_fleet_that_was_given_up_is_forgiven_for_what_it_does(root: Path) -> None:
    async def main() -> None:
        broken, healthy = StillFleet("lab", answers=[False] * (GIVE_UP_AFTER + 1) + [True]), StillFleet()
        async with opened(root, healthy) as world:
            world.fleets = {"lab": broken, "local": healthy}
            jobs = await begin_with(world, broken, healthy)
            pen, late = Pen(world), Pen(world, "lab/late/1")
            last = [lambda: finish(late, jobs[0]), wait, lambda: finish(pen, *jobs[1:])]
            seen: list[tuple[StoreSnapshot | None, list[SweepProgress], str]] = []
            await watch(world, Steps(*[wait] * 8, *last), seen).run()
            troubles = list_troubles(seen)
            assert all(troubles[5:9]) and not troubles[-1]

    write_two_fleets(root)
    asyncio.run(main())


def test_jobs_are_not_counted_by_fleets_at_each_look(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted, count_ended = [], SweepView.count_ended

    def count(view: SweepView, fleet: str) -> int:
        counted.append(fleet)
        return count_ended(view, fleet)

    async def main() -> None:
        broken, healthy = StillFleet("lab", answers=[False]), StillFleet()
        async with opened(root, healthy) as world:
            world.fleets = {"lab": broken, "local": healthy}
            jobs = await begin_with(world, broken, healthy)
            pen, after = Pen(world), len(jobs)
            steps = Steps(*[wait] * 40, *[lambda job=job: finish(pen, job) for job in jobs])
            await watch(world, steps, []).run()
            assert len(counted) <= 2 * (GIVE_UP_AFTER + 1) + after

    monkeypatch.setattr(SweepView, "count_ended", count)
    write_two_fleets(root)
    asyncio.run(main())


def test_agent_that_left_as_its_work_came_is_started_again_for_whoever_does_not_watch(root: Path) -> None:
    async def main() -> None:
        fleet = StillRentedFleet(answers=[False, True], booting=True)
        async with opened(root, fleet) as world:
            await apply(world)
            fleet.count, fleet.asked = 0, []
            await wait_for_agents(world.reader(), [fleet])
            assert fleet.asked == [1] and fleet.answers == [True], "what boots is not waited for"
            await cancel_sweep(world, "small", "enough")
            fleet.answers = [False]
            await wait_for_agents(world.reader(), [fleet])
            assert fleet.asked == [1], "there is nothing to do"

    asyncio.run(main())
