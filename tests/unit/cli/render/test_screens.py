"""What the screens say: plans, progress, outcomes; from a project that an agent's pen moves along."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from monkey.apply.inspect.attempt_records import read_attempts
from monkey.apply.orders import cancel_sweep, resume_sweep
from monkey.apply.planning import make_plan
from monkey.apply.watch.sweep_progress import SweepProgress
from monkey.apply.world.world import World
from monkey.cli.live_view import LiveView
from monkey.cli.render.apply_outcome import explain_hold, explain_silence, format_detached, format_outcome
from monkey.cli.render.job_details import format_job_details, format_sweep_details, serialize_job_details
from monkey.cli.render.list_tables import format_jobs, format_sweeps
from monkey.cli.render.plan_lines import format_plan
from monkey.cli.render.progress_lines import draw_progress, format_progress
from monkey.cli.render.status_lines import format_status, serialize_status
from monkey.cli.terminal.text import Terminal
from monkey.cli.watching import find_best
from monkey.plan.change import Plan
from monkey.plan.digest import compute_plan_digest
from monkey.plan.text.short_texts import measure_width
from monkey.protocol.entries import ClaimEnd
from monkey.protocol.status.store_snapshot import StoreSnapshot
from monkey.results.curves.curve import Curve
from tests.unit.apply.small_project import Pen, apply, opened, write_project

HOSTILE = "\x1b[31mred\x1b]0;title\x07\rsecond"


def played(root: Path, scene: Callable[[World, Pen, list[str]], Awaitable[None]]) -> None:
    """Apply the small sweep, and let the scene play with its world, a pen, and its jobs."""

    async def main() -> None:
        async with opened(root) as world:
            jobs = (await apply(world)).wanted[0].desired.table.ids
            await scene(world, Pen(world), list(jobs))

    write_project(root)
    asyncio.run(main())


async def looked(world: World) -> tuple[StoreSnapshot, SweepProgress]:
    """Return how things are now."""
    snapshot = await world.reader().read()
    view = snapshot.sweeps["small"]
    return snapshot, SweepProgress(view, view.counts, rate=1.5, eta=80)


async def three_ends(world: World, pen: Pen, jobs: list[str]) -> None:
    """One job fails in words that would steer a terminal, one succeeds, one runs."""
    await pen.begin(jobs[0])
    await pen.end(jobs[0], ClaimEnd.FAILED, reason=HOSTILE, exit_code=1, log_tail=["first", f"why: {HOSTILE}"])
    await pen.begin(jobs[1])
    await pen.end(jobs[1], metrics={"loss": {"last": 0.25, "min": 0.25, "max": 1.0, "step": 3, "count": 3}})
    await pen.begin(jobs[2])


def test_a_bar_is_drawn_thick_where_jobs_are_done(tmp_path: Path) -> None:
    async def scene(world: World, pen: Pen, jobs: list[str]) -> None:
        await three_ends(world, pen, jobs)
        snapshot, progress = await looked(world)
        first, *_ = draw_progress(snapshot, [progress], {}, "", Terminal(80))
        assert first.split()[1] == "━" * 24 + "─" * 12

    played(tmp_path, scene)


def test_plan_shows_changes_in_colour_and_ends_in_a_sentence(tmp_path: Path) -> None:
    write_project(tmp_path)

    async def main() -> None:
        async with opened(tmp_path) as world:
            planned = await make_plan(world, [])
            lines = format_plan(planned.plan, Terminal(colour=True))
            assert lines[0] == "\x1b[1msmall\x1b[0m \x1b[2m(specs/small.yaml)\x1b[0m"
            assert lines[1].startswith("\x1b[32m  + ")
            assert format_plan(planned.plan, Terminal())[-2].startswith("Plan: 3 new; ")
            assert all(measure_width(line) <= 40 for line in format_plan(planned.plan, Terminal(40)))
            await apply(world)
            lines = format_plan((await make_plan(world, [])).plan, Terminal())
            assert lines == ["No changes: 3 kept.", f"Digest: {compute_plan_digest(Plan((), project='test'))}"]
            assert len(format_plan((await make_plan(world, [])).plan, Terminal(), everything=True)) > 3

    asyncio.run(main())


def test_every_screen_is_free_of_what_jobs_would_steer_it_with(tmp_path: Path) -> None:
    async def scene(world: World, pen: Pen, jobs: list[str]) -> None:
        await three_ends(world, pen, jobs)
        snapshot, progress = await looked(world)
        best = {"small": found} if (found := find_best(progress)) else {}
        view = progress.view
        tries = await read_attempts(world, view, jobs[0])
        for width in (None, 100, 30):
            to = Terminal(width)
            screens = {
                "drawn": draw_progress(snapshot, [progress], best, "", to),
                "said": format_progress(snapshot, [progress], best, HOSTILE),
                "outcome": format_outcome([progress], best, {}, to, changed=True),
                "status": format_status("/store", snapshot, [view], to),
                "jobs": format_jobs([view], (), to),
                "sweeps": format_sweeps([view], to),
                "job": format_job_details(view, jobs[0], tries, world.keys, "/store", to),
                "sweep": format_sweep_details(view, snapshot, to),
            }
            for name, lines in screens.items():
                for line in lines:
                    assert not re.search(r"[\x00-\x1f\x7f]", line), (name, line)

    played(tmp_path, scene)


def test_progress_tells_counts_pace_and_the_best(tmp_path: Path) -> None:
    async def scene(world: World, pen: Pen, jobs: list[str]) -> None:
        await three_ends(world, pen, jobs)
        snapshot, progress = await looked(world)
        best = find_best(progress)
        assert best is not None and (best.job, best.value) == (jobs[1], 0.25)
        lines = draw_progress(snapshot, [progress], {"small": best}, "", Terminal(80))
        assert lines[0].endswith("2/3  1.5/s  1m20s left")
        assert lines[1].strip() == "1 succeeded, 1 failed, 1 running"
        assert lines[2].strip() == "best loss 0.25 (lr=2)"
        assert lines[3] == "1 agent at work"
        (line,) = format_progress(snapshot, [progress], {"small": best}, "")
        assert line == "small: 2/3 done; 1 failed, 1 running; 1.5/s, 1m20s left; best loss 0.25 (lr=2)"

    played(tmp_path, scene)


def test_detaching_says_how_to_come_back() -> None:
    text = "\n".join(format_detached(["small"]))
    assert all(way in text for way in ("monkey status small", "monkey status -w small", "monkey cancel small"))


def test_plain_view_is_a_line_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    out = io.StringIO()

    async def scene(world: World, pen: Pen, jobs: list[str]) -> None:
        snapshot, progress = await looked(world)
        with LiveView(find_best, out) as live:
            for now[0] in (0.0, 4.0, 6.0, 7.0, 15.0, 17.0, 100.0):
                live.show(snapshot, [progress], "")
        assert out.getvalue() == "small: 0/3 done; 3 queued; 1.5/s, 1m20s left\n", "the same is not said twice"

    played(tmp_path, scene)


def test_last_plain_line_says_that_all_are_done_and_no_line_is_blank(tmp_path: Path) -> None:
    async def scene(world: World, pen: Pen, jobs: list[str]) -> None:
        for job in jobs:
            await pen.begin(job)
            await pen.end(job)
        snapshot, _ = await looked(world)
        view = snapshot.sweeps["small"]
        assert format_progress(snapshot, [SweepProgress(view, view.counts)], {}, "") == ["small: 3/3 done"]
        out = io.StringIO()
        with LiveView(find_best, out) as live:
            live._say(None, [], "")
        assert out.getvalue() == ""

    played(tmp_path, scene)


def test_a_fleet_that_was_given_up_is_told_beside_the_agents(tmp_path: Path) -> None:
    async def scene(world: World, pen: Pen, jobs: list[str]) -> None:
        snapshot, progress = await looked(world)
        hindered = replace(progress, trouble="the agent of 'lab' left 3 times")
        assert draw_progress(snapshot, [hindered], {}, "", Terminal(80))[-1] == "! the agent of 'lab' left 3 times"
        assert format_progress(snapshot, [hindered], {}, "")[-1] == "! the agent of 'lab' left 3 times"

    played(tmp_path, scene)


def test_progress_is_told_first_however_narrow_the_terminal(tmp_path: Path) -> None:
    async def scene(world: World, pen: Pen, jobs: list[str]) -> None:
        await three_ends(world, pen, jobs)
        snapshot, progress = await looked(world)
        for width in (15, 20, 40, 80):
            assert "2/3" in draw_progress(snapshot, [progress], {}, "", Terminal(width))[0][:width]

    played(tmp_path, scene)


def test_cancelled_job_carries_the_sweep_s_reason_whatever_its_last_attempt_ended_with(tmp_path: Path) -> None:
    async def scene(world: World, pen: Pen, jobs: list[str]) -> None:
        await cancel_sweep(world, "small", "")
        assert explain_hold((await looked(world))[1])[0].startswith("It was cancelled; ")
        await pen.heart.beat()  # nobody need wait for an agent
        await resume_sweep(world, "small")
        await pen.begin(jobs[0])
        await pen.end(jobs[0], ClaimEnd.RELEASED, reason="no longer part of the sweep")
        await cancel_sweep(world, "small", "enough")
        _, progress = await looked(world)
        assert explain_hold(progress)[0].startswith("It was cancelled (enough); ")
        text = "\n".join(format_jobs([progress.view], (), Terminal()))
        assert text.count("cancelled: enough") == 3 and "no longer part" not in text
        notes = "\n".join(format_plan((await make_plan(world, [])).plan, Terminal(), everything=True))
        assert "cancelled (enough): a new revision" in notes

    played(tmp_path, scene)


def test_silence_is_explained_by_how_the_job_ended(tmp_path: Path) -> None:
    async def scene(world: World, pen: Pen, jobs: list[str]) -> None:
        await pen.begin(jobs[0])
        await pen.end(jobs[0], ClaimEnd.FAILED, reason="could not begin", log_tail=["last words"])
        await pen.begin(jobs[1])
        await pen.end(jobs[1])
        view = (await looked(world))[1].view
        assert explain_silence("a", [view.view(jobs[0])]) == ["a wrote nothing; could not begin", "  │ last words"]
        assert explain_silence("b", [view.view(jobs[1])]) == ["b wrote nothing; it succeeded"]
        assert "nothing yet (it is queued)" in explain_silence("c", [view.view(jobs[2])])[0]

    played(tmp_path, scene)


def test_outputs_are_shown_where_they_can_be_opened(tmp_path: Path) -> None:
    async def scene(world: World, pen: Pen, jobs: list[str]) -> None:
        k = await pen.begin(jobs[0])
        await pen.end(jobs[0], outputs={"model.json": "a" * 64})
        await world.at.put(f"{world.keys.out(jobs[0], k)}outputs/model.json", b"{}")
        view = (await looked(world))[1].view
        tries = await read_attempts(world, view, jobs[0])
        lines = format_job_details(view, jobs[0], tries, world.keys, world.at.url, Terminal())
        (shown,) = (line.split()[0] for line in lines if "model.json" in line)
        assert Path(shown) in set(tmp_path.rglob("model.json"))  # noqa: ASYNC240 - a small directory
        (attempt,) = serialize_job_details(view, jobs[0], tries)["attempts"]
        assert attempt["seconds"] == 1.5 and attempt["ended"] - attempt["started"] == pytest.approx(1.5, abs=0.01)

    played(tmp_path, scene)


def test_what_a_job_used_and_that_it_diverged_is_told(tmp_path: Path) -> None:
    async def scene(world: World, pen: Pen, jobs: list[str]) -> None:
        loss = {"last": None, "min": 0.5, "max": 0.5, "step": 1, "count": 1, "nonfinite": 7}
        used = {"cpus": 1.25, "memory_bytes": 3_200_000_000, "gpu_percent": 87.5, "gpu_memory_bytes": 20_000_000_000}
        used["skipped_lines"] = 3
        await pen.begin(jobs[0])
        await pen.end(jobs[0], metrics={"loss": loss}, usage=used)
        await pen.begin(jobs[1])
        await pen.end(jobs[1], metrics={"loss": {**loss, "nonfinite": 0}})
        snapshot, progress = await looked(world)
        view = progress.view
        tries = await read_attempts(world, view, jobs[0])
        lines = [line.strip() for line in format_job_details(view, jobs[0], tries, world.keys, "/store", Terminal())]
        curves = {"loss": Curve([1, 2, 3], [0.75, 0.5, float("nan")], [0.0] * 3)}
        drawn = format_job_details(view, jobs[0], tries, world.keys, "/store", Terminal(80), curves=curves)
        assert [line.split()[-1] for line in drawn if "METRIC" in line or " loss " in line] == ["CURVE", "█▁!"]
        at = lines.index("usage")
        assert ["loss", "nan", "0.5", "0.5", "1", "1", "7"] in [line.split() for line in lines]
        assert lines[at + 1 : at + 6] == [
            "memory 3 GiB at its peak",
            "CPUs 1.25 on average, of 1 asked for",
            "GPUs 87.5% busy on average, of 0 asked for",
            "GPU memory 18.6 GiB at its peak",
            "lines or values of its metrics that were skipped: 3",
        ]
        assert serialize_job_details(view, jobs[0], tries)["usage"] == used and view.view(jobs[1]).usage == {}
        told = "small: NaN or infinite values of loss in 1 job; `monkey info JOB` counts them."
        assert told in format_status("/store", snapshot, [view], Terminal())
        (small,) = serialize_status("/store", snapshot, [view])["sweeps"]
        assert small["nonfinite"] == {"loss": 1}

    played(tmp_path, scene)


def test_plan_says_aloud_that_finished_jobs_would_be_run_again(tmp_path: Path) -> None:
    async def scene(world: World, pen: Pen, jobs: list[str]) -> None:
        await three_ends(world, pen, jobs)
        assert "run again" not in format_plan((await make_plan(world, [])).plan, Terminal())[-2]
        (tmp_path / "train.py").write_text("print('changed')\n")
        last = format_plan((await make_plan(world, [])).plan, Terminal())[-2]
        assert "1 finished job will be run again" in last and "1 running job will be stopped" in last

    played(tmp_path, scene)
