"""Who is told of a sweep's end, and how often, on virtual time: agents are killed before they send, and after it."""

from __future__ import annotations

import asyncio

from monkey.spec.notices import Channel
from monkey.spec.recipe import Resources, Settings
from tests.simulation.campaign import campaign
from tests.simulation.story import Story, revision
from tests.simulation.test_protocol import QUIET
from tests.simulation.world import Weather, World

SEEDS = range(30)


def test_everybody_is_told_once_where_nobody_is_killed() -> None:
    total = campaign(
        SEEDS, None, Weather(**{**QUIET, "fault_rate": 0.2, "flaky": True}, agents=3, outage=(0, 0), notify=True)
    )
    assert not total.bad, total.report()
    assert total.counts["not told at once"] and not total.counts["told twice"]


def test_everybody_is_told_though_agents_are_killed() -> None:
    total = campaign(SEEDS, None, Weather(jobs=(1, 20), calm_from=600, notify=True))
    assert not total.bad, total.report()
    assert total.counts["crash while it is told"] and total.counts["told twice"] and total.counts["goal reached"]


def test_a_sweep_that_nobody_can_run_has_stalled_once_nothing_else_runs() -> None:
    assert _stalled(0) == ([], 1)


def _stalled(seed: int) -> tuple[list[str], int]:
    """Return what was told while another sweep ran, and how often that this one stalled when it had ended."""
    world = World(seed, Weather(**{**QUIET, "jobs": (2500, 2600)}, agents=3, outage=(0, 0), notify=True))
    asyncio.set_event_loop(world.loop)
    story, early = Story(world), list[str]()

    async def live() -> None:
        settings = Settings(providers=["f"], notify=[Channel("webhook", "HOOK", ("stalled",))])
        await story.apply(revision("a", range(1), settings))
        await story.apply(revision("b", range(1, 3), Settings(**{**vars(settings), "resources": Resources(gpus=1)})))
        world.raise_machines()
        await asyncio.sleep(2000)
        early.extend(world.told)
        await asyncio.sleep(3000)
        world.finished = world.loop.time()

    world.run(live())
    assert world.told.keys() <= {"b"} and not world.violations
    return early, world.counts["told of stalled"]
