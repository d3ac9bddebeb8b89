"""What a sweep has come to, as one who was not there is told: at work, paused, silent, cancelled, ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from monkey.apply.world.world import World
from monkey.protocol.entries import ClaimEnd
from monkey.protocol.notices.sweep_outcome import STALLED_SECONDS, SweepOutcome, SweepVerdict, judge_sweep
from monkey.protocol.sweeps.sweep_log import append_order
from tests.unit.apply.small_project import Pen, apply, opened, write_project


async def judge(world: World, later: float = 0.0) -> SweepOutcome:
    snapshot = await world.reader().read()
    return judge_sweep("test", snapshot, snapshot.sweeps["small"], time.time() + later)


async def order(world: World, kind: str) -> None:
    await append_order(world.at, world.keys, world.signers, "small", kind)


def live(root: Path, story: Callable[[World], Awaitable[None]]) -> None:
    """Apply a sweep in a new project, and let the story happen to it."""
    write_project(root)

    async def whole() -> None:
        async with opened(root) as world:
            await apply(world)
            await story(world)

    asyncio.run(whole())


def test_silence_counts_from_the_last_sign_and_not_after_an_order(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        assert await judge(world) == SweepOutcome(SweepVerdict.WORKING, "0/3")
        silent = await judge(world, STALLED_SECONDS + 5)
        assert silent[:2] == (SweepVerdict.STALLED, "stalled: 0/3")
        assert silent.notice is not None and silent.notice["kind"] == "stalled"
        job = (await world.reader().read()).sweeps["small"].state.revision.table.ids[0]
        await Pen(world).begin(job)
        assert (await judge(world, STALLED_SECONDS + 5)).verdict is SweepVerdict.WORKING, "an agent has it in hand"
        await order(world, "pause")
        assert (await judge(world, STALLED_SECONDS + 5))[:2] == (SweepVerdict.PAUSED, "paused: 0/3")
        await order(world, "resume")
        assert (await judge(world, 10 * STALLED_SECONDS)).verdict is SweepVerdict.WORKING, "it may be on its way"

    live(tmp_path, story)


def test_an_end_has_a_name_of_its_own_and_a_retry_another(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        names = []
        jobs = (await world.reader().read()).sweeps["small"].state.revision.table.ids
        pen = Pen(world)
        for turn in range(2):
            for job in jobs[:1] if turn else jobs:
                await pen.begin(job)
                await pen.end(job, ClaimEnd.FAILED if job == jobs[0] else ClaimEnd.SUCCEEDED)
            ended = await judge(world)
            assert ended[:2] == (SweepVerdict.FAILED, "2 succeeded, 1 failed") == (await judge(world, 9e9))[:2]
            names.append(ended.notice["event"])
            log = pen.logs[jobs[0]]
            retried = {jobs[0]: log.head}
            await append_order(world.at, world.keys, world.signers, "small", "retry", jobs=retried)
            assert (await judge(world)).verdict is SweepVerdict.WORKING
        assert len(set(names)) == 2

    live(tmp_path, story)
