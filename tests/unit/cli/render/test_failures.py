"""Failures as a person would sort them: alike together, a log's end for each of a few kinds, the rest in short."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from monkey.apply.orders import retry_jobs
from monkey.apply.watch.sweep_progress import SweepProgress
from monkey.cli.main import run_guarded
from monkey.cli.render.failure_groups import _MAX_KINDS, LOG_LINES, format_failures
from monkey.cli.render.job_details import format_sweep_details
from monkey.cli.render.list_tables import format_jobs
from monkey.cli.render.status_lines import format_status
from monkey.cli.terminal.text import Terminal
from monkey.protocol.entries import ClaimEnd
from monkey.protocol.status.store_snapshot import JobState
from monkey.results.failure_kinds import select_failures
from monkey.store.content.objects import SEND_AGAIN
from tests.unit.apply.small_project import SPEC, Pen, apply, opened, write_project


async def _failed(root: Path, ends: Sequence[tuple[str, int | None, str]]) -> tuple[list[str], list[str], list[str]]:
    """Let a sweep's jobs fail for these (reason, exit code, last line); returns the jobs, what is told, the list."""
    async with opened(root) as world:
        jobs = list((await apply(world)).wanted[0].desired.table.ids)
        pen = Pen(world)
        for job, (reason, code, last) in zip(jobs, ends, strict=True):
            await pen.begin(job)
            tail = [*map(str, range(20)), last, ""]
            await pen.end(job, ClaimEnd.FAILED, reason=reason, exit_code=code, log_tail=tail)
        snapshot = await world.reader().read()
        view = snapshot.sweeps["small"]
        told = format_failures(SweepProgress(view, view.counts), Terminal())
        assert told == format_status("/store", snapshot, [view], Terminal())[-len(told) :], "status says the same"
        return jobs, told, format_jobs([view], (), Terminal())


def told(root: Path, ends: Sequence[tuple[str, int | None, str]]) -> tuple[list[str], list[str], list[str]]:
    spec = SPEC.replace("[1, 2, 3]", str(list(range(len(ends))))) + "datasets: {d: train.py}\n"
    write_project(root, spec)
    return asyncio.run(_failed(root, ends))


def test_kinds_are_told_by_how_many_each_with_the_end_of_one_log(tmp_path: Path) -> None:
    ends = [("exit code 1", 1, "KeyError: 'a'")] + [("exit code 1", 1, f"ValueError: {n}") for n in range(3)]
    ends += [("exit code 2", 2, "ValueError: 0"), ("exit code 2", 2, "ValueError: 9")]
    jobs, lines, _ = told(tmp_path, ends)
    heads = [line for line in lines if " failed: " in line]
    signatures = [re.findall("signature ([0-9a-f]{6})", head) for head in heads]
    assert len({name for found in signatures for name in found}) == 3
    [[one], [two], [three]] = signatures
    assert heads == [
        f"3 jobs failed: exit code 1 (the first: lr=1; job {jobs[1]}; signature {one})",
        f"2 jobs failed: exit code 2 (the first: lr=4; job {jobs[4]}; signature {two})",
        f"1 job failed: exit code 1 (lr=0; job {jobs[0]}; signature {three})",
    ]
    at = lines.index(heads[0])
    assert lines[at + LOG_LINES - 1 : at + LOG_LINES + 2] == ["  │ ValueError: 0", "  │ ", ""]
    end = "`monkey retry small` tries again; after a change of the code, `monkey apply`."
    assert lines[-1] == f"`monkey logs {jobs[1]}` shows all of it; {end}"


def test_of_many_kinds_a_few_are_told_and_the_rest_in_short(tmp_path: Path) -> None:
    ends = [("exit code 1", 1, f"Error: {'x' * n}") for n in range(_MAX_KINDS + 4)]
    ends += [("timed out after 5s", 143, "epoch 3"), ("timed out after 5s", 143, "starting")]
    _, lines, listed = told(tmp_path, ends)
    assert sum("│ Error: " in line for line in lines) == _MAX_KINDS - 1
    assert any(line.startswith("2 jobs failed: timed out after 5s (the first") for line in lines), (
        "whatever it said last"
    )
    short = (
        "… and 5 more jobs failed: exit code 1 with 5 other last lines. `monkey list jobs small --state failed` shows"
    )
    assert any(line.startswith(short) for line in lines), lines
    assert any(line.endswith("exit code 1: Error: xxx") for line in listed), "the command that is named shows how"
    assert not any("epoch 3" in line for line in listed)


def test_lacking_data_is_one_failure_whichever_file_and_is_pushed_first(tmp_path: Path) -> None:
    ends = [(f"a dataset cannot be had: files/md5/{n}{n}/0 is damaged {SEND_AGAIN}", None, "") for n in (1, 2)]
    _, lines, _ = told(tmp_path, ends)
    assert sum(" failed: " in line for line in lines) == 1
    assert lines[-1].endswith("`monkey push` where the data is, then `monkey retry small`, tries again.")


def test_the_failures_of_one_signature_are_retried_and_no_others(tmp_path: Path) -> None:
    ends = [("exit code 1", 1, f"KeyError: {n}") for n in range(2)] + [("exit code 1", 1, "ValueError")]
    jobs, lines, _ = told(tmp_path, ends)
    [signature] = {found for line in lines for found in re.findall(r"2 jobs failed.*signature ([0-9a-f]{6})", line)}

    async def retry() -> tuple[int, list[JobState]]:
        async with opened(tmp_path) as world:
            done = await retry_jobs(world, "small", choose=lambda view: select_failures(view, signature))
            view = (await world.reader().read()).sweeps["small"]
            return done.jobs, [view.where(job) for job in jobs]

    assert asyncio.run(retry()) == (2, [JobState.QUEUED, JobState.QUEUED, JobState.FAILED])


def test_a_signature_chooses_by_itself(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(["retry", "small", "abc", "--signature", "3fa2c1"]) == 1
    assert "name no JOB beside it" in capfd.readouterr().err


def test_a_rule_and_its_change_of_the_spec_are_shown_with_the_failures(tmp_path: Path) -> None:
    spec = SPEC.replace("[1, 2, 3]", "[1, 2, 3, 4]") + "  seed: {range: [0, 8]}\n"
    write_project(tmp_path, spec.replace("metric: {name: loss}\n", "") + "metric: {name: loss}\n")

    async def inside() -> tuple[list[str], list[str]]:
        async with opened(tmp_path) as world:
            table = (await apply(world)).wanted[0].desired.table
            pen = Pen(world)
            for job, parameters in table.rows():
                await pen.begin(job, beat=False)
                bad = parameters["lr"] == 4
                await pen.end(job, ClaimEnd.FAILED if bad else ClaimEnd.SUCCEEDED, exit_code=1 if bad else 0)
            snapshot = await world.reader().read()
            view = snapshot.sweeps["small"]
            return format_failures(SweepProgress(view, view.counts), Terminal()), format_sweep_details(
                view, snapshot, Terminal()
            )

    failures, details = asyncio.run(inside())
    assert any(line.startswith("  8 of 8 with lr >= 4; 0 of 24 elsewhere (p = ") for line in failures)
    assert "    +exclude: [{lr: 4}]" in failures
    assert any("8 of 8 with lr >= 4" in line for line in details)


def test_a_log_s_end_is_told_as_a_terminal_leaves_it(tmp_path: Path) -> None:
    """Colours are no words, and of a progress bar the last state counts."""
    said = ["\x1b[31mValueError: bad\x1b[0m", "10%\r20%\rValueError: bad", "ValueError: bad\x1b[0m\r"]
    ends = [("exit code 1", 1, last) for last in said]
    _, lines, listed = told(tmp_path, ends)
    [head] = [line for line in lines if " failed: " in line]
    assert head.startswith("3 jobs failed: exit code 1 (the first: lr=0;")
    assert lines.count("  │ ValueError: bad") == 1
    assert all(line.endswith("exit code 1: ValueError: bad") for line in listed[1:])
