"""Machines that are paid for: what plans say that they cost, who is asked, what is refused, and until when it lasts."""

from __future__ import annotations

import asyncio
import io
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from monkey.apply.cost_limits import refuse_cost
from monkey.apply.orders import extend_sweep, pause_sweep, resume_sweep, retry_jobs
from monkey.apply.planning import make_plan
from monkey.apply.watch.sweep_progress import judge_counts
from monkey.apply.watch.watch_loop import SweepWatch
from monkey.apply.world.world import World
from monkey.cli.commands.apply import ApplyOrder, _apply
from monkey.cli.commands.audit import _audit
from monkey.cli.render.plan_lines import format_plan
from monkey.cli.render.status_lines import format_status, serialize_status
from monkey.cli.terminal.text import Terminal
from monkey.errors import MonkeyError, PlanError, SpecError
from monkey.plan.cost import FleetCost
from monkey.plan.text.markdown import format_markdown
from monkey.plan.text.plan_document import serialize_plan
from monkey.protocol.entries import ClaimEnd
from monkey.protocol.status.store_snapshot import JobState
from monkey.protocol.sweeps.sweep_log import append_revision, read_sweep
from monkey.spec.job.expires import Expiry, format_utc_time
from tests.unit.apply.paper import renting, write_rented
from tests.unit.apply.small_project import Pen, apply

HOUR = 3600.0
SUM = "at most 4 × paper.large × 12 h × $1.01 = $48.48 until "


def free(costs: dict[str, FleetCost]) -> None:
    """Agree to everything."""


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nobody at a terminal."""
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))


def test_renting_is_shown_asked_about_and_done_until_its_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main() -> None:
        write_rented(tmp_path)
        async with renting(tmp_path) as (world, cloud):
            plan = (await make_plan(world, [])).plan
            shown = "\n".join(format_plan(plan, Terminal(60)))
            assert f"$ cloud: {SUM}" in shown and "machines are rented for at most $48.48." in shown
            told = serialize_plan(plan)
            assert told["fleets"][0]["cost"]["total"] == 48.48 and told["sweeps"][0]["expires"] == plan.at + 12 * HOUR
            assert "**Applying rents machines for at most $48.48.**" in format_markdown(
                plan
            ) and SUM in format_markdown(plan)
            with pytest.raises(MonkeyError, match="applying would rent machines of cloud") as refused:
                await _apply(world, ApplyOrder([], [], detach=True))
            assert SUM in refused.value.message and refused.value.hint == "--yes agrees to that"
            assert cloud.rented()["machines"] == 0 and world.store is None, "nothing was made"
            before = time.time()
            await _apply(world, ApplyOrder([], [], yes=True, detach=True))
            state = await read_sweep(world.at, world.keys, world.signers, "small")
            assert state.expires == cloud.rented()["until"], "machines go when the sweep expires"
            assert before <= (state.expires or 0) - 12 * HOUR <= time.time() and cloud.rented()["machines"] == 3
            snapshot = await world.reader().read()
            shown = "\n".join(format_status("here", snapshot, [snapshot.sweeps["small"]], Terminal(), (), world.rented))
            assert "take minutes to come, `monkey list instances` shows them; `monkey apply` rents them." in shown
            again = (await make_plan(world, [])).plan
            assert not again.changes and not again.rented and again.sweeps[0].expires(0.0) == state.expires
            write_rented(tmp_path, expires="20h")
            with pytest.raises(MonkeyError, match=r"applying would rent machines of cloud \(at most 4 × .* × 20 h"):
                await _apply(world, ApplyOrder([], [], detach=True))  # no more machines, but for longer
            write_rented(tmp_path, expires="2h")
            assert not (await make_plan(world, [])).plan.rented, "less asks nobody"

    asyncio.run(main())
    assert "nothing was" not in capsys.readouterr().out


def test_what_is_above_max_cost_is_refused_by_plan_and_apply(tmp_path: Path) -> None:
    async def main() -> None:
        write_rented(tmp_path, more=", max_cost: 48")
        async with renting(tmp_path) as (world, cloud):
            message = r"provider 'cloud': expected at most \$48.00 \(max_cost in monkey.yaml\), found at most 4 × paper"
            for wish in (make_plan(world, []), _apply(world, ApplyOrder([], [], yes=True, detach=True))):
                with pytest.raises(PlanError, match=message):
                    await wish
            assert cloud.rented()["machines"] == 0
        write_rented(tmp_path, expires="11h", more=", max_cost: 48")
        async with renting(tmp_path) as (world, cloud):
            await apply(world)
            assert cloud.rented()["machines"] == 3

    asyncio.run(main())


def refused_line(root: Path, expires: str) -> tuple[int, str]:
    """Return the line and the message by which a plan is refused."""

    async def main() -> tuple[int, str]:
        write_rented(root, expires)
        async with renting(root) as (world, _):
            with pytest.raises(SpecError) as refused:
                await make_plan(world, [])
        (problem,) = refused.value.problems
        return problem.line, problem.message

    return asyncio.run(main())


def test_a_time_that_is_past_or_too_far_away_is_refused_with_its_line(tmp_path: Path) -> None:
    assert refused_line(tmp_path, "2020-01-01T00:00Z") == (7, "expected a time to come, found 2020-01-01 00:00 UTC")
    soon = time.time() + 300
    line, message = refused_line(tmp_path, f'"{Expiry(at=soon).to_json()}"')
    assert line == 7 and message == f"expected 10m or more on provider 'cloud', found {format_utc_time(soon)}"
    far = time.time() + 8 * 24 * HOUR
    line, message = refused_line(tmp_path, f'"{Expiry(at=far).to_json()}"')
    assert line == 7 and message == f"expected at most 7d on provider 'cloud', found {format_utc_time(far)}"


async def age(world: World, seconds: float) -> int:
    """Have the sweep be as if it had been applied so long ago; returns where its log ends."""
    there = await read_sweep(world.at, world.keys, world.signers, "small")
    assert there.revision is not None
    await append_revision(
        world.at, world.keys, world.signers, replace(there.revision, applied=time.time() - seconds), there.head
    )
    return there.head + 1


def test_a_sweep_whose_time_is_over_is_told_of_and_goes_on_when_it_is_extended(tmp_path: Path) -> None:
    async def main() -> None:
        write_rented(tmp_path)
        async with renting(tmp_path) as (world, cloud):
            jobs = (await apply(world)).wanted[0].desired.table.ids
            await Pen(world, "cloud/i-1/1").begin(jobs[0])
            head = await age(world, 12 * HOUR + 1)
            plan = (await make_plan(world, [])).plan
            (note,) = plan.sweeps[0].notes
            assert note.startswith("expired at ") and "`monkey extend small 6h` goes on" in note
            assert not plan.changes and plan.fleets[0].jobs == 0
            snapshot = await world.reader().read()
            view = snapshot.sweeps["small"]
            assert view.counts == {JobState.RUNNING: 1, JobState.EXPIRED: 2}
            said = "\n".join(format_status("here", snapshot, [view], Terminal()))
            assert "It has expired (" in said and "with 3 jobs left; `monkey extend small 6h` goes on." in said
            told = serialize_status("here", snapshot, [view])["sweeps"][0]
            assert told["expires"] == view.state.expires and told["states"]["expired"] == 2
            cloud.file.unlink()  # machines go when their time is over
            with pytest.raises(MonkeyError, match="that would rent machines of cloud") as refused:
                await extend_sweep(world, "small", Expiry(after=6 * HOUR), refuse_cost)
            assert "4 × paper.large × 6 h × $1.01 = $24.24" in refused.value.message
            assert (await read_sweep(world.at, world.keys, world.signers, "small")).head == head, "nothing was extended"
            with pytest.raises(MonkeyError, match="expected it to expire in 10m or more on provider 'cloud', found"):
                await extend_sweep(world, "small", Expiry(after=59), free)
            done, until = await extend_sweep(world, "small", Expiry(after=6 * HOUR), free)
            assert done.jobs == 3 and until == cloud.rented()["until"]
            assert until is not None and abs(until - time.time() - 6 * HOUR) < 60, "from now, since it had expired"
            snapshot = await world.reader().read()
            assert snapshot.sweeps["small"].counts == {JobState.RUNNING: 1, JobState.QUEUED: 2}
            said = "\n".join(format_status("here", snapshot, [snapshot.sweeps["small"]], Terminal()))
            assert f"small: expires at {format_utc_time(until)}, in " in said and "extend" not in said
            _, later = await extend_sweep(world, "small", Expiry(after=HOUR), free)
            assert later == until + HOUR, "besides what it has"

    asyncio.run(main())


def test_an_extension_is_refused_where_it_would_be_none_or_cost_too_much(tmp_path: Path) -> None:
    async def main() -> None:
        write_rented(tmp_path, more=", max_cost: 50")
        async with renting(tmp_path) as (world, cloud):
            await apply(world)
            rented = cloud.rented()
            for asked, words in (
                (Expiry(at=time.time() + HOUR), "expected a time after"),
                (Expiry(after=7 * 24 * HOUR), "expected it to expire within 7d from now on provider 'cloud'"),
                (Expiry(after=2 * HOUR), r"expected at most \$50.00"),
            ):
                with pytest.raises(MonkeyError, match=words):
                    await extend_sweep(world, "small", asked, free)
            assert (
                await read_sweep(world.at, world.keys, world.signers, "small")
            ).head == 1 and cloud.rented() == rented
            await pause_sweep(world, "small")
            done, until = await extend_sweep(world, "small", Expiry(after=20 * HOUR), refuse_cost)
            assert done.changed and cloud.rented() == rented, "a paused sweep rents nothing"
            assert until == rented["until"] + 20 * HOUR
            with pytest.raises(PlanError, match="max_cost"):
                await resume_sweep(world, "small", free)

    asyncio.run(main())


def test_who_opens_a_sweep_again_is_asked_too(tmp_path: Path) -> None:
    async def main() -> None:
        write_rented(tmp_path)
        async with renting(tmp_path) as (world, cloud):
            await apply(world)
            await pause_sweep(world, "small")
            cloud.file.unlink()  # machines leave when there is nothing to do
            with pytest.raises(MonkeyError, match="that would rent machines of cloud"):
                await resume_sweep(world, "small")
            assert cloud.rented()["machines"] == 0
            told: list[tuple[str, str]] = []
            await resume_sweep(world, "small", free, lambda what, done: told.append((what, done)))
            assert cloud.rented()["machines"] == 3 and told == [("cloud", "3 machines asked for")]
            await extend_sweep(world, "small", Expiry(after=HOUR), free, lambda what, done: told.append((what, done)))
            assert len(told) == 2, "each says what it changes at the cloud"
            await pause_sweep(world, "small")
            assert (await resume_sweep(world, "small")).changed, "who rents no more than there is asks nobody"

    asyncio.run(main())


def test_jobs_that_have_failed_are_asked_about_where_they_are_tried_again(tmp_path: Path) -> None:
    async def main() -> None:
        write_rented(tmp_path)
        async with renting(tmp_path) as (world, cloud):
            jobs = (await apply(world)).wanted[0].desired.table.ids
            pen = Pen(world, "cloud/i-1/1")
            await pen.begin(jobs[0])
            await pen.end(jobs[0], ClaimEnd.FAILED)
            cloud.file.write_text(json.dumps({**cloud.rented(), "machines": 2}))  # one had no more to do
            await pause_sweep(world, "small")
            assert (await resume_sweep(world, "small")).changed
            with pytest.raises(MonkeyError, match="that would rent machines of cloud"):
                await retry_jobs(world, "small")
            assert (await retry_jobs(world, "small", agree=free)).jobs == 1 and cloud.rented()["machines"] == 3

    asyncio.run(main())


def test_a_watch_ends_when_the_time_is_over(tmp_path: Path) -> None:
    async def main() -> None:
        write_rented(tmp_path)
        async with renting(tmp_path) as (world, _):
            await apply(world)
            await age(world, 12 * HOUR - 2)
            (one,) = await SweepWatch(world.at, world.keys, world.reader(), {}, ["small"], lambda *_: None).run()
            assert one.wait == judge_counts(one.counts) == "expired" and not one.wait.well
            done, until = await extend_sweep(world, "small", Expiry(after=HOUR), free)
            assert done.jobs == 3 and until is not None

    asyncio.run(main())


def test_what_never_expires_or_is_done_is_not_extended(root: Path) -> None:
    from tests.unit.apply.small_project import opened

    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
            done, until = await extend_sweep(world, "small", Expiry(after=HOUR), free)
            assert not done.changed and until is None

    asyncio.run(main())


def test_an_audit_tells_what_everything_costs_by_region(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> list[int]:
        write_rented(tmp_path)
        async with renting(tmp_path) as (world, cloud):
            await apply(world)
            capsys.readouterr()
            codes = [await _audit(world, False), await _audit(world, True)]
            cloud.file.with_suffix(".astray").touch()
            return [*codes, await _audit(world, False)]

    assert asyncio.run(main()) == [0, 0, 1]
    text = capsys.readouterr().out
    assert "eu-central-1: 4 things, $3.03 an hour" in text and "instance paper.large" in text
    assert "! cloud/i-2: a machine that no apply has written down" in text
    told = json.loads(text[text.index("{") : text.rindex("}") + 1])
    assert told["findings"] == [] and [each["price"] for each in told["holdings"]] == [0.0, 1.01, 1.01, 1.01]
