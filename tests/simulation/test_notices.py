"""Who is told of a sweep's end, and how often, on virtual time: agents are killed before they send, and after it."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from monkey.spec.job.recipe import JobResources, SweepSettings
from monkey.spec.job.stop_when import StopRule
from monkey.spec.project.notify_channel import NotifyChannel
from tests.simulation.campaign import campaign
from tests.simulation.story import Story, revision
from tests.simulation.test_protocol import QUIET
from tests.simulation.world import Weather, World

pytestmark = pytest.mark.slow

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


def test_a_sweep_that_its_last_job_ends_is_told_of_once() -> None:
    seeds = (5, 18, 40, 15, 21, 25, 16)  # three that fail, three that reach their goal, one that does neither
    ended = sum((_ended_by_its_last_job(seed) for seed in seeds), Counter[str]())
    assert ended["goal reached"] > 1 and ended["fail_fast"] > 1


def _ended_by_its_last_job(seed: int) -> Counter[str]:
    """Return what ended a sweep of one job; whatever it was, one notice tells of it."""
    world = World(seed, Weather(**{**QUIET, "flaky": True, "jobs": (1, 20)}, agents=3, outage=(0, 0), notify=True))
    asyncio.set_event_loop(world.loop)
    rules = [StopRule("loss", above=3, sweep=True)] if seed % 2 else []
    told = [NotifyChannel("webhook", "HOOK", ("finished", "failed"))]
    settings = SweepSettings(providers=["f"], notify=told, stop_when=rules, fail_fast=True)

    async def live() -> None:
        await Story(world).apply(revision("a", range(seed // 2, seed // 2 + 1), settings))
        world.raise_machines()
        await asyncio.sleep(900)
        world.finished = world.loop.time()

    world.run(live())
    assert not world.violations and list(world.told_events.values()) == [1]
    return world.counts


def test_a_sweep_that_nobody_can_run_has_stalled_once_nothing_else_runs() -> None:
    assert _stalled(0) == ([], 1)


def _stalled(seed: int) -> tuple[list[str], int]:
    """Return what was told while another sweep ran, and how often that this one stalled when it had ended."""
    world = World(seed, Weather(**{**QUIET, "jobs": (2500, 2600)}, agents=3, outage=(0, 0), notify=True))
    asyncio.set_event_loop(world.loop)
    story, early = Story(world), list[str]()

    async def live() -> None:
        settings = SweepSettings(providers=["f"], notify=[NotifyChannel("webhook", "HOOK", ("stalled",))])
        await story.apply(revision("a", range(1), settings))
        await story.apply(
            revision("b", range(1, 3), SweepSettings(**{**vars(settings), "resources": JobResources(gpus=1)}))
        )
        world.raise_machines()
        await asyncio.sleep(2000)
        early.extend(world.told)
        await asyncio.sleep(3000)
        world.finished = world.loop.time()

    world.run(live())
    assert world.told.keys() <= {"b"} and not world.violations
    return early, world.counts["told of stalled"]
