"""Which jobs count in means, ranks and "best": told by the command line from a store that a pen has written."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from monkey.apply.watch.sweep_progress import SweepProgress
from monkey.cli.render.results_table import format_results
from monkey.cli.terminal.text import Terminal
from monkey.cli.watching import find_best
from monkey.protocol.entries import ClaimEnd
from monkey.protocol.sweeps.sweep_log import append_stop, read_sweep
from monkey.results.result_rows import Results, gather_results
from monkey.spec.job.recipe import SweepSettings
from tests.unit.apply.small_project import Pen, apply, opened, write_project
from tests.unit.plan.making import grid, table
from tests.unit.results.sample_results import Job

SPEC = """\
name: small
command: python3 train.py --lr {lr} --seed {seed}
parameters:
  lr: [1, 2, 3]
  seed: [0, 1, 2]
metric: {name: loss}
stop_when:
  - {metric: loss, above: 10}
  - {metric: acc, above: 0.9, scope: sweep}
"""
DIVERGED = {"metric": "loss", "value": 12.0, "step": 3}
GOAL = {"metric": "acc", "value": 0.95, "step": 3}
#: lr and seed, how the job ended, its last loss, and more about its end.
ENDS: list[tuple[int, int, ClaimEnd, float, dict[str, Any]]] = [
    (1, 0, ClaimEnd.SUCCEEDED, 0.1, {}),
    (1, 1, ClaimEnd.SUCCEEDED, 0.1, {}),
    (1, 2, ClaimEnd.FAILED, 5.0, {"reason": "exit code 1"}),
    (2, 0, ClaimEnd.FAILED, 0.01, {"reason": "exit code 1"}),
    (2, 2, ClaimEnd.STOPPED, 0.03, {"met": DIVERGED}),
    (3, 0, ClaimEnd.STOPPED, 0.2, {"met": GOAL}),
    (3, 1, ClaimEnd.SUCCEEDED, 0.4, {"sweep": "other"}),
    # It met the goal; then another sweep had it tried again, and what it shows now is of that.
    (3, 2, ClaimEnd.STOPPED, 0.001, {"met": GOAL}),
    (3, 2, ClaimEnd.FAILED, 0.002, {"sweep": "other", "reason": "exit code 1"}),
]


def loss(last: float) -> dict[str, Any]:
    return {"loss": {"last": last, "min": last, "max": last, "step": 9, "count": 1, "nonfinite": 0}}


async def write(root: Path) -> SweepProgress:
    """Write a sweep that one job ended by its goal, with jobs in every state that the goal leaves."""
    async with opened(root) as world:
        table = (await apply(world)).wanted[0].desired.table
        ids = {(point["lr"], point["seed"]): job for job, point in table.rows()}
        pen = Pen(world)
        for lr, seed, outcome, last, about in ENDS:
            job, sweep = ids[lr, seed], about.get("sweep", "small")
            k = await pen.begin(job, sweep)
            await world.at.put(f"{world.keys.out(job, k)}outputs/made", job.encode())
            made = {"made": sha256(job.encode()).hexdigest()}
            await pen.end(job, outcome, **{"sweep": sweep, "metrics": loss(last), "outputs": made, **about})
        k = await pen.begin(ids[2, 1], beat=False)
        running = {"job": ids[2, 1], "k": k, "sweep": "small", "metrics": loss(0.02)}
        pen.heart.vitals = lambda: {"running": [running], "alert": ""}
        await pen.heart.beat()
        state = await read_sweep(world.at, world.keys, world.signers, "small")
        assert (await append_stop(world.at, world.keys, world.signers, state, (ids[3, 0], 2))).goal
        view = (await world.reader().read()).sweeps["small"]
        return SweepProgress(view, view.counts)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SweepProgress]:
    root = tmp_path_factory.mktemp("project")
    write_project(root, SPEC)
    return root, asyncio.run(write(root))


def told(root: Path, *arguments: str) -> str:
    """Run monkey, and return what it prints."""
    command = [sys.executable, "-P", "-m", "monkey.cli.main", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def cells(text: str) -> list[list[str]]:
    """Return the cells of a printed table, without its head."""
    return [line.split() for line in text.splitlines()[1:]]


def test_jobs_that_count_come_first_and_the_others_follow_best_first(project: tuple[Path, SweepProgress]) -> None:
    rows = json.loads(told(project[0], "results", "--json"))
    assert [(row["metrics"].get("loss"), row["state"], row["counts"]) for row in rows] == [
        (0.1, "succeeded", True),
        (0.1, "succeeded", True),
        (0.2, "stopped", True),
        (0.4, "succeeded", True),
        (0.002, "stopped", False),
        (0.01, "failed", False),
        (0.02, "running", False),
        (0.03, "stopped", False),
        (5.0, "failed", False),
    ]


def test_the_table_tells_by_the_state_which_jobs_count(project: tuple[Path, SweepProgress]) -> None:
    rows = cells(told(project[0], "results"))
    stopped = [row[3:5] for row in rows if row[3] == "stopped"]
    assert stopped == [["stopped", "(goal)"], ["stopped", "1.5s"], ["stopped", "1.5s"]]
    assert [row[2] for row in rows][4:7] == ["0.002", "0.01", "0.02"], "what does not count is shown all the same"


def test_best_is_the_first_row_wherever_it_is_told(project: tuple[Path, SweepProgress]) -> None:
    root, progress = project
    (first,) = json.loads(told(root, "results", "--json", "--top", "1"))
    best = find_best(progress)
    assert best is not None
    assert (best.job, best.value, best.parameters) == (first["job"], 0.1, "lr=1 seed=0")


def test_fetch_takes_jobs_that_count_before_others(project: tuple[Path, SweepProgress], tmp_path: Path) -> None:
    told(project[0], "fetch", "small", "--top", "4", "-o", str(tmp_path / "best"))
    rows = csv.DictReader(io.StringIO((tmp_path / "best" / "results.csv").read_text()))
    found = {row["job"]: row["loss"] for row in rows}
    assert list(found.values()) == ["0.1", "0.1", "0.2", "0.4"]
    assert {path.parent.name for path in tmp_path.rglob("made")} == found.keys()


def test_means_are_of_jobs_that_count_and_n_says_of_how_many(project: tuple[Path, SweepProgress]) -> None:
    assert cells(told(project[0], "results", "--group-by", "lr")) == [
        ["1", "0.1", "±", "0", "2", "of", "3"],
        ["3", "0.3", "±", "1.3", "2", "of", "3"],
        ["2", "0", "of", "3"],
        ["mean", "±", "half", "of", "its", "95", "%", "t", "interval,", "over", "the", "n", "jobs", "that", "count"],
    ]


def test_n_is_plain_where_all_jobs_of_the_group_count(project: tuple[Path, SweepProgress]) -> None:
    where = 'lr == 1 and state == "succeeded"'
    found = cells(told(project[0], "results", "--group-by", "lr", "--where", where))
    assert found[0] == ["1", "0.1", "±", "0", "2"]


def test_programs_are_told_numbers_of_jobs_that_count(project: tuple[Path, SweepProgress]) -> None:
    groups = json.loads(told(project[0], "results", "--group-by", "lr", "--json"))
    found = [(len(one["jobs"]), one["metrics"].get("loss", {}).get("n")) for one in groups]
    assert found == [(3, 2), (3, 2), (3, None)]
    assert (groups[0]["metrics"]["loss"]["mean"], groups[0]["metrics"]["loss"]["max"]) == (0.1, 0.1)
    rows = csv.DictReader(io.StringIO(told(project[0], "results", "--csv")))
    assert [row["counts"] for row in rows] == ["true"] * 4 + ["false"] * 5
    rows = csv.DictReader(io.StringIO(told(project[0], "results", "--group-by", "lr", "--csv")))
    assert [(row["lr"], row["jobs"], row["loss.n"], row["loss.max"]) for row in rows] == [
        ("1", "3", "2", "0.1"),
        ("3", "3", "2", "0.4"),
        ("2", "3", "0", ""),
    ]


def test_where_shows_jobs_that_do_not_count_but_takes_no_mean_of_them(project: tuple[Path, SweepProgress]) -> None:
    failed = 'state == "failed"'
    assert [row[2] for row in cells(told(project[0], "results", "--where", failed))] == ["0.01", "5"]
    grouped = cells(told(project[0], "results", "--where", failed, "--group-by", "lr"))
    assert grouped == [["2", "0", "of", "1"], ["1", "0", "of", "1"]]


def test_no_job_is_best_while_none_that_counts_has_a_value() -> None:
    assert gathered().best is None


def test_rows_that_do_not_count_are_dim_and_failures_red() -> None:
    _, *lines = format_results(gathered(), Terminal(colour=True))
    starts = [line.partition("m")[0] for line in lines]
    assert "succeeded" in lines[0] and "\x1b" not in lines[0]
    assert starts[1:] == ["\x1b[31", "\x1b[2"]


def gathered() -> Results:
    """Return results of three jobs, of which the one that counts has no value."""
    rows = table(grid(lr=[1, 2, 3]))
    seen = [Job("failed", metrics=loss(0.1)), Job("running", metrics=loss(0.2)), Job()]
    return gather_results(rows, SweepSettings(metric="loss"), dict(zip(rows.ids, seen, strict=True)))
