"""Waiting: when it is over, how fast things go, and that somebody is kept at work meanwhile."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from monkey.apply.orders import cancel_sweep, pause_sweep, resume_sweep, retry_jobs
from monkey.apply.watch.stuck_sweeps import BEATS
from monkey.apply.watch.sweep_progress import SweepPace, SweepProgress, WaitOutcome, judge_counts
from monkey.errors import FleetError, MonkeyError, NotFound, StoreRefused
from monkey.protocol.entries import ClaimEnd
from monkey.protocol.status.store_snapshot import JobState, StoreSnapshot
from monkey.protocol.sweeps.queue_markers import read_queue
from monkey.protocol.sweeps.sweep_log import read_sweep
from tests.bucket import FakeBucket, Refusal
from tests.unit.apply.small_project import Pen, StillFleet, apply, opened
from tests.unit.apply.watch.watch_steps import Steps, watch


@pytest.mark.parametrize(
    ("counts", "wait"),
    [
        ({}, WaitOutcome.SUCCEEDED),
        ({JobState.SUCCEEDED: 3}, WaitOutcome.SUCCEEDED),
        ({JobState.SUCCEEDED: 3, JobState.QUEUED: 1}, WaitOutcome.WORKING),
        ({JobState.FAILED: 1, JobState.FROZEN: 1}, WaitOutcome.WORKING),
        ({JobState.FAILED: 1, JobState.CANCELLED: 5}, WaitOutcome.FAILED),
        ({JobState.CANCELLED: 1, JobState.SUCCEEDED: 1}, WaitOutcome.CANCELLED),
        ({JobState.PAUSED: 1, JobState.SUCCEEDED: 1}, WaitOutcome.PAUSED),
        ({JobState.PAUSED: 1, JobState.RUNNING: 1}, WaitOutcome.WORKING),
    ],
)
def test_judgement(counts: dict[JobState, int], wait: WaitOutcome) -> None:
    assert judge_counts(Counter(counts)) is wait


def test_pace_is_of_the_last_minute_and_begins_anew_after_a_retry() -> None:
    pace = SweepPace()
    pace.see(0, 10)
    assert pace.rate is None, "nothing has ended under our eyes"
    pace.see(10, 30)
    assert pace.rate == 2
    for second in range(11, 200):
        pace.see(second, 30 + second)
    assert pace.rate == pytest.approx(1, rel=0.1)
    pace.see(201, 5)
    assert pace.rate is None


def test_watch_ends_with_the_last_job(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            jobs = (await apply(world)).wanted[0].desired.table.ids
            pen = Pen(world)

            async def run(job: str, outcome: ClaimEnd) -> None:
                await pen.begin(job)
                await pen.end(job, outcome, reason="exit code 3", metrics={"loss": {"last": 0.5}})

            steps = Steps(
                lambda: run(jobs[0], ClaimEnd.SUCCEEDED),
                lambda: run(jobs[1], ClaimEnd.FAILED),
                lambda: run(jobs[2], ClaimEnd.SUCCEEDED),
            )
            seen: list[tuple[StoreSnapshot | None, list[SweepProgress], str]] = []
            (progress,) = await watch(world, steps, seen).run()
            assert progress.wait is WaitOutcome.FAILED
            assert progress.counts == {JobState.SUCCEEDED: 2, JobState.FAILED: 1}
            assert [shown[0].unfinished for _, shown, _ in seen] == [3, 2, 1, 0]
            assert seen[2][1][0].eta is not None
            assert not await world.at.list(world.keys.watchers), "the watcher's marker goes with the watch"

    asyncio.run(main())


def test_store_that_is_away_is_waited_for(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            job, *rest = (await apply(world)).wanted[0].desired.table.ids
            pen, store, away = Pen(world), root / ".monkey/store", root / ".monkey/away"

            async def vanish() -> None:
                store.rename(away)

            async def come_back() -> None:
                assert not store.exists(), "something was made where the store had been"
                away.rename(store)

            async def finish() -> None:
                for each in (job, *rest):
                    await pen.begin(each)
                    await pen.end(each)

            seen: list[tuple[StoreSnapshot | None, list[SweepProgress], str]] = []
            (progress,) = await watch(world, Steps(vanish, come_back, finish), seen).run()
            assert progress.wait is WaitOutcome.SUCCEEDED
            assert [bool(trouble) for _, _, trouble in seen] == [False, True, False, False]
            assert seen[1][1][0].unfinished == 3, "what was known stays on the screen"

    asyncio.run(main())


def test_pause_resume_cancel_retry_are_entries_that_queue_and_call(root: Path) -> None:
    async def main() -> None:
        fleet = StillFleet()
        async with opened(root, fleet) as world:
            jobs = (await apply(world)).wanted[0].desired.table.ids
            pen = Pen(world)
            await pen.begin(jobs[0])
            await pen.end(jobs[0], ClaimEnd.FAILED, reason="exit code 1")
            await pen.begin(jobs[1])
            done = await pause_sweep(world, "small")
            assert (done.changed, done.jobs, done.running) == (True, 2, 1)
            assert not (await pause_sweep(world, "small")).changed
            assert (await resume_sweep(world, "small")).changed
            assert not (await resume_sweep(world, "small")).changed
            assert (await cancel_sweep(world, "small", "enough")).changed
            assert not (await cancel_sweep(world, "small", "")).changed
            assert (await read_sweep(world.at, world.keys, world.signers, "small")).cancelled == "enough"
            assert not (await pause_sweep(world, "small")).changed, "nothing of it runs"
            fleet.count, fleet.asked = 0, []
            assert (await retry_jobs(world, "small")).jobs == 1
            state = await read_sweep(world.at, world.keys, world.signers, "small")
            assert state.active and state.retries == {jobs[0]: 2}
            assert state.head in (await read_queue(world.at, world.keys, "local")).find_open("small")
            assert fleet.asked == [1]
            assert not (await retry_jobs(world, "small")).changed

    asyncio.run(main())


def test_retry_names_one_job_by_its_beginning(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            jobs = (await apply(world)).wanted[0].desired.table.ids
            pen = Pen(world)
            for job in jobs[:2]:
                await pen.begin(job)
                await pen.end(job, ClaimEnd.FAILED)
            with pytest.raises(MonkeyError, match="has not failed: it is queued"):
                await retry_jobs(world, "small", [jobs[2]])
            with pytest.raises(NotFound, match="has no job 'xyz'"):
                await retry_jobs(world, "small", ["xyz"])
            assert (await retry_jobs(world, "small", [jobs[1][:8]])).jobs == 1
            assert set((await read_sweep(world.at, world.keys, world.signers, "small")).retries) == {jobs[1]}

    asyncio.run(main())


def test_orders_to_a_sweep_that_is_not_there_name_the_nearest(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
            for order in (
                pause_sweep(world, "smal"),
                resume_sweep(world, "smal"),
                cancel_sweep(world, "smal", ""),
                retry_jobs(world, "smal"),
            ):
                with pytest.raises(NotFound, match="there is no sweep 'smal'") as caught:
                    await order
                assert caught.value.hint == "did you mean 'small'?"
            assert (await read_sweep(world.at, world.keys, world.signers, "smal")).head == 0

    asyncio.run(main())


def test_jobs_that_fit_no_machine_are_not_waited_for(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
            pen = Pen(world)
            pen.heart.vitals = lambda: {
                "alert": "small: a job asks for 64 CPUs, more than there is here",
                "unfit": unfit,
            }
            unfit = ["small"]
            seen: list[tuple[StoreSnapshot | None, list[SweepProgress], str]] = []
            with pytest.raises(FleetError, match="nothing can go on: small: a job asks for 64 CPUs") as caught:
                await watch(world, Steps(*[pen.heart.beat] * 20), seen).run()
            assert "resources" in (caught.value.hint or "") and len(seen) > BEATS
            other = Pen(world, "local/roomy/1")
            await other.heart.beat()
            jobs = (await world.reader().read(["small"])).sweeps["small"].ids

            async def finish() -> None:
                for job in jobs:
                    await other.begin(job)
                    await other.end(job)

            steps = Steps(*[pen.heart.beat] * 20, finish)
            assert [one.wait for one in await watch(world, steps, []).run()] == [WaitOutcome.SUCCEEDED], (
                "one agent has room"
            )

    asyncio.run(main())


def test_a_refusal_is_waited_out_for_a_while_and_then_explained(root: Path, bucket: FakeBucket) -> None:
    (root / "monkey.yaml").write_text(f"project: test\nstore: {bucket.url()}\n")

    async def deny() -> None:
        bucket.refusal = Refusal(403, "AccessDenied", "no")

    async def allow() -> None:
        bucket.refusal = None

    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
            seen: list[tuple[StoreSnapshot | None, list[SweepProgress], str]] = []
            with pytest.raises(StoreRefused, match=r"these credentials may not .* agents go on") as caught:
                await watch(world, Steps(deny, allow, deny), seen).run()
            assert "it takes s3:" in str(caught.value.hint) and "`monkey status -w` watches again" in str(
                caught.value.hint
            )
            assert [bool(trouble) for _, _, trouble in seen[:4]] == [False, True, False, True]
            assert seen[1][1][0].unfinished == 3, "what was known stays on the screen"

    asyncio.run(main())
