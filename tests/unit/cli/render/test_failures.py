"""Failures as a person would sort them: alike together, a log's end for each of a few kinds, the rest in short."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from monkey.apply.watch.sweep_progress import SweepProgress
from monkey.cli.render.failure_groups import _MAX_KINDS, LOG_LINES, format_failures
from monkey.cli.render.list_tables import format_jobs
from monkey.cli.render.status_lines import format_status
from monkey.cli.terminal.text import Terminal
from monkey.protocol.entries import ClaimEnd
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
    assert heads == [
        f"3 jobs failed: exit code 1 (the first: lr=1; job {jobs[1]})",
        f"2 jobs failed: exit code 2 (the first: lr=4; job {jobs[4]})",
        f"1 job failed: exit code 1 (lr=0; job {jobs[0]})",
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
