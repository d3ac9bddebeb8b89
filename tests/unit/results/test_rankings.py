"""Ranks, marks and means of sweeps with failures, NaN, running and pruned jobs, as `rankings.yaml` has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from monkey.metrics.summary import MetricSummary
from monkey.results.export import serialize_row
from monkey.results.groups import group_results
from monkey.results.result_rows import Results, gather_results
from monkey.results.result_table import tabulate_groups, tabulate_results
from monkey.spec.sweep.load import parse_spec
from tests.unit.plan.making import table
from tests.unit.results.sample_results import Job

CASES: list[dict[str, Any]] = YAML(typ="safe").load(Path(__file__).with_name("rankings.yaml"))


def summarize(values: list[float | str]) -> dict[str, dict[str, Any]]:
    """Return the summary of a job that logged these values; "nan" and "inf" are texts, as in metrics files."""
    summary = MetricSummary()
    for step, value in enumerate(values):
        record = {"t": 1.0 + step, "step": step, "m": {"loss": value}}
        summary.feed(json.dumps(record).encode() + b"\n")
    return summary.finish()


def gather(case: dict[str, Any]) -> Results:
    spec = f"command: a\nmetric: {json.dumps(case['metric'])}\n"
    rows = table([{"lr": lr, "seed": seed} for lr, seed, _, _ in case["jobs"]])
    seen = [
        Job(state.removesuffix(" (goal)"), metrics=summarize(values), goal=state.endswith("(goal)"))
        for _, _, state, values in case["jobs"]
    ]
    settings = parse_spec(spec, "specs/a.yaml", Path()).settings()
    return gather_results(rows, settings, dict(zip(rows.ids, seen, strict=True)))


pytestmark = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])


def test_ranks_and_marks(case: dict[str, Any]) -> None:
    results = gather(case)
    shown = tabulate_results(results, everything=True)
    columns = [shown.names.index(name) for name in ("lr", "seed", "loss", "state")]
    expected = [[str(cell) for cell in row] for row in case["ranks"]]
    assert [[row[at] for at in columns] for row in shown.rows] == expected
    best = results.best
    assert (best and [best.parameters["lr"], best.parameters["seed"]]) == case["best"]


def test_what_counts_and_what_diverged_is_told_to_programs(case: dict[str, Any]) -> None:
    rows = [serialize_row(row) for row in gather(case).rows]
    states = [state for *_, state in case["ranks"]]
    assert [row["diverged"] for row in rows] == ["(diverged)" in state for state in states]
    assert [row["counts"] for row in rows] == [state in ("succeeded", "stopped (goal)") for state in states]


def test_means_and_their_intervals(case: dict[str, Any]) -> None:
    results = gather(case)
    groups = group_results(results, ["lr"])
    means = [made.metrics["loss"].mean if "loss" in made.metrics else None for made in groups]
    assert [made.parameters["lr"] for made in groups] == [lr for lr, *_ in case["means"]]
    assert means == [mean if mean is None else pytest.approx(mean) for _, mean, _, _ in case["means"]]
    shown = tabulate_groups(groups, ["lr"], results).rows
    assert [[cells[1], cells[-1]] for cells in shown] == [[spread, n] for *_, spread, n in case["means"]]
