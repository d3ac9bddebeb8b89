"""Tables of results on a terminal of 80 columns: a line a job, whole numbers, and the missing columns named."""

from __future__ import annotations

import re

import pytest

from monkey.cli.render.results_table import format_groups, format_results
from monkey.cli.terminal.text import Terminal, lay_out_table
from monkey.plan.text.short_texts import measure_width
from monkey.results.groups import group_results
from monkey.results.result_rows import Results
from tests.unit.plan.making import grid
from tests.unit.results.sample_results import Job, made, metric

#: As a random search draws them.
DRAWS = [
    {"alpha": 6.108064765123e-05 / i, "dropout": 0.09301124450070002 * i, "lr": 0.000120049912345 * i,
     "momentum": 0.9123456789012345 / i, "optimizer": "adamw-with-a-long-name", "width": 2 ** i, "seed": i}
    for i in range(1, 11)
]  # fmt: skip


def draw(jobs: list[dict[str, object]]) -> Results:
    entries = [{"acc": metric(0.123456789 / (1 + i)), "loss": metric(1e-7 * (1 + i))} for i in range(len(jobs))]
    return made(jobs, [Job(metrics=entry, state="failed" if "loss" in entry and not i else "succeeded")
                       for i, entry in enumerate(entries)])  # fmt: skip


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_each_job_takes_one_line_and_no_number_is_cut(width: int) -> None:
    head, *lines = format_results(draw(DRAWS), Terminal(width))
    assert all(measure_width(line) <= width for line in (head, *lines))
    assert [line.split()[-1] for line in lines[: len(DRAWS)]] == [row.job for row in draw(DRAWS).rows]
    assert "…" not in "".join(lines[: len(DRAWS)]) and lines[len(DRAWS)].startswith("… ")
    assert {"acc", "job", "state"} <= set(head.split())


def test_the_columns_that_there_is_no_room_for_are_named_and_numbers_keep_their_exponents() -> None:
    head, *lines = format_results(draw(DRAWS), Terminal(80))
    assert head.split() == ["alpha", "lr", "acc", "state", "job"]
    assert re.search(r"6\.108064765123e-05 +0\.000120049912345 +0\.12346", "\n".join(lines))
    gone = "no room for dropout, momentum, width, seed, loss, time (--csv has all)"
    assert " ".join(lines[len(DRAWS) :]).endswith(gone)


def test_where_there_is_room_nothing_is_left_out() -> None:
    head, *lines = format_results(draw(DRAWS), Terminal(200))
    assert head.split()[-5:] == ["acc", "loss", "state", "time", "job"] and len(lines) == 11
    assert "no room" not in lines[-1]


def test_a_long_text_is_cut_before_a_column_goes() -> None:
    jobs = [{"path": "data/" + "x" * 60 + str(i), "seed": i} for i in range(3)]
    head, *lines = format_results(draw(jobs), Terminal(80))
    assert {"path", "seed", "acc", "state", "job"} <= set(head.split())
    assert len({line.split()[0] for line in lines[:3]}) == 3
    assert all(re.match(r"data/x+…x+[012] ", line) for line in lines[:3])


def test_groups_take_a_line_each_and_say_what_their_interval_is() -> None:
    results = draw(grid(lr=[1.23456789e-05, 2e-05], seed=range(5)))
    groups = group_results(results, ["lr"])
    lines = format_groups(groups, ["lr"], results, Terminal(40), everything=False, top=None)
    assert all(measure_width(line) <= 40 for line in lines[:3])
    assert lines[0].split() == ["lr", "acc", "n"] and any(
        re.match(r"1\.23456789e-05 .* 4 of 5$", line) for line in lines
    )
    assert "95 % t interval" in lines[3] and "no room for loss" in lines[-1]


def test_tables_cut_texts_and_never_numbers() -> None:
    lines = lay_out_table(["name", "loss"], [["x" * 40, 6.10806e-05]], Terminal(30))
    assert lines[1].endswith("6.10806e-05") and "…" in lines[1]
    assert lay_out_table(["loss", "n"], [[6.10806e-05, 123456]], Terminal(17)) == ["loss  6.10806e-05", "n     123456"]
