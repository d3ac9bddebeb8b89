"""Jobs that failed for good in another sweep, or in an earlier revision: no apply runs them, and the plan says so."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

from monkey.apply.orders import retry_jobs
from monkey.apply.planning import make_plan
from monkey.apply.world.lookup import find_sweep
from monkey.apply.world.world import World
from monkey.plan.change import Plan
from monkey.plan.text.lines import format_sweep_plan, summarize_plan
from monkey.plan.text.markdown import format_markdown
from monkey.plan.text.plan_document import serialize_plan
from monkey.protocol.entries import ClaimEnd
from monkey.protocol.status.store_snapshot import JobState
from tests.unit.apply.small_project import SPEC, Pen, StillFleet, apply, opened

OTHER = SPEC.replace("small", "other")


def write(root: Path, text: str, name: str = "small") -> str:
    """Write a spec; returns its path."""
    path = root / "specs" / f"{name}.yaml"
    path.write_text(text)
    return str(path)


async def fail(world: World, spec: str, rows: Collection[int] = range(3)) -> None:
    """Apply a spec, and have its jobs of these rows fail for good."""
    planned = await apply(world, spec)
    want = planned.wanted[0].desired
    pen = Pen(world, f"local/{want.name}/1")
    for row in rows:
        await pen.begin(want.table.ids[row], want.name)
        await pen.end(want.table.ids[row], ClaimEnd.FAILED, want.name)


async def plan(world: World, *specs: str) -> Plan:
    return (await make_plan(world, specs)).plan


async def states(world: World, sweep: str) -> dict[JobState, int]:
    return dict(find_sweep(await world.reader().read(), sweep).counts)


def texts(planned: Plan) -> list[str]:
    return [line.text for line in format_sweep_plan(planned.sweeps[0])]


def test_another_sweep_s_failed_jobs_are_not_announced_not_run_and_retried_by_their_name(root: Path) -> None:
    async def main() -> None:
        fleet = StillFleet()
        async with opened(root, fleet) as world:
            await fail(world, write(root, SPEC))
            fleet.count, other = 0, write(root, OTHER, "other")
            planned = await plan(world, other)
            (sweep,), (part,) = planned.sweeps, planned.fleets
            assert not sweep.jobs.new and not sweep.jobs.unfinished and part.jobs == 0 and not part.changes
            assert sweep.revises and not sweep.adopted
            assert summarize_plan(planned) == "3 failed before"
            assert texts(planned)[:2] == [
                "3 jobs failed before (3 in sweep small): apply runs none",
                "lr{1,2,3} = 3 jobs",
            ]
            assert "3 jobs failed before: once applied, `monkey retry other` tries again" in texts(planned)
            told = serialize_plan(planned)["sweeps"][0]
            assert told["jobs"] == {"new": 0, "stale": 0, "kept": 0, "removed": 0}
            assert told["failed_before"] == {"small": 3}
            assert "| new | stale | kept | failed before | removed |" in format_markdown(planned)

            asked = len(fleet.asked)
            await apply(world, other)
            assert len(fleet.asked) == asked, "no machine is asked for"
            assert await states(world, "other") == {JobState.FAILED: 3}
            assert not (await plan(world, other)).changes
            assert (await retry_jobs(world, "other")).jobs == 3
            assert await states(world, "other") == {JobState.QUEUED: 3} and fleet.asked[asked:] == [1]
            assert await states(world, "small") == {JobState.FAILED: 3}, "a retry is one sweep's"

    asyncio.run(main())


def test_job_that_another_sweep_stopped_is_announced_only_to_a_sweep_without_that_condition(root: Path) -> None:
    async def main() -> None:
        fleet, rules = StillFleet(), "stop_when: [{metric: loss, above: 5}]\n"
        async with opened(root, fleet) as world:
            await fail(world, write(root, SPEC + rules), [1])
            pen, small = Pen(world), find_sweep(await world.reader().read(), "small")
            await pen.begin(small.ids[0])
            await pen.end(small.ids[0], ClaimEnd.STOPPED, met={"metric": "loss", "value": 9.0, "step": 1})
            planned = await plan(world, write(root, OTHER + rules, "other"))
            assert planned.fleets[0].jobs == 1 and planned.sweeps[0].jobs.unfinished == 1
            assert summarize_plan(planned) == "1 new, 2 failed or stopped before"
            assert "2 jobs failed or stopped before (2 in sweep small): apply runs none" in texts(planned)
            assert "2 jobs failed or stopped before: once applied, `monkey retry other` tries again" in texts(planned)
            ends = "stop_when: [{metric: loss, above: 5, scope: sweep}]\nfail_fast: true\n"
            planned = await plan(world, write(root, OTHER + ends, "other"))
            told = "which may cancel the sweep (fail_fast), which may end the sweep (stop_when)"
            assert f"2 jobs failed or stopped before, {told}: once applied" in " ".join(texts(planned))
            planned = await plan(world, write(root, OTHER + rules.replace("5", "10"), "other"))
            assert planned.fleets[0].jobs == 2 and summarize_plan(planned) == "2 new, 1 failed before"

    asyncio.run(main())


def test_change_that_is_taken_back_brings_failed_jobs_back_as_failed(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            spec = write(root, SPEC)
            await fail(world, spec, [0, 1])
            write(root, SPEC.replace("train.py", "train.py --fast"))
            await apply(world, spec)
            write(root, SPEC)
            planned = await plan(world, spec)
            (sweep,) = planned.sweeps
            assert len(sweep.jobs.failed) == 2 and sweep.jobs.unfinished == 1 and planned.fleets[0].jobs == 1
            assert sweep.jobs.counts == {"new": 0, "stale": 1, "kept": 0, "removed": 2}
            assert "2 jobs failed before (2 in an earlier revision): apply runs none" in texts(planned)
            kept = (await make_plan(world, [spec], ["command"])).plan.sweeps[0]
            assert not kept.adopted and len(kept.jobs.failed) == 2
            await apply(world, spec)
            assert await states(world, "small") == {JobState.FAILED: 2, JobState.QUEUED: 1}
            assert (await retry_jobs(world, "small")).jobs == 2
            write(root, SPEC.replace("train.py", "train.py --fast"))
            await apply(world, spec)
            write(root, SPEC)
            assert not (await plan(world, spec)).sweeps[0].jobs.failed, "their failures count from the retry on"

    asyncio.run(main())


def test_sweep_s_own_settings_decide_whether_a_job_has_failed_for_it(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            await fail(world, write(root, SPEC), [0])
            patient = write(root, OTHER + "max_retries: 1\n", "other")
            sweep = (await plan(world, patient)).sweeps[0]
            assert sweep.jobs.unfinished == 3 and not sweep.jobs.failed
            await apply(world, patient)
            assert await states(world, "other") == {JobState.QUEUED: 3}

    asyncio.run(main())


def test_fail_fast_is_told_since_an_old_failure_ends_the_sweep(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            await fail(world, write(root, SPEC), [0])
            told = texts(await plan(world, write(root, OTHER + "fail_fast: true\n", "other")))
            assert (
                "1 job failed before, which may cancel the sweep (fail_fast): once applied, `monkey retry other` tries "
                "again" in told
            )

    asyncio.run(main())


def test_result_that_a_failed_job_adopts_by_equivalences_is_told(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            done = await apply(world, write(root, SPEC))
            pen = Pen(world)
            await pen.begin(done.wanted[0].desired.table.ids[0])
            await pen.end(done.wanted[0].desired.table.ids[0])
            renamed = SPEC.replace("lr", "rate").replace("--rate", "--lr")
            await fail(world, write(root, renamed.replace("small", "failed"), "failed"), [0])
            declared = renamed.replace("small", "third") + "equivalences:\n  - renamed: {lr: rate}\n"
            planned = await plan(world, write(root, declared, "third"))
            assert len(planned.sweeps[0].adopted) == 1 and not planned.sweeps[0].jobs.failed
            assert "1 of the jobs that adopt a result has failed itself" in texts(planned)

    asyncio.run(main())
