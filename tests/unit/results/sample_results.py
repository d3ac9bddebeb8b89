"""Results to test with, made in one line each."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from monkey.results.result_rows import Results, gather_results
from monkey.spec.job.recipe import MetricTake, SweepSettings
from tests.unit.plan.making import grid, table


@dataclass(frozen=True)
class Job:
    state: str = "succeeded"
    number: int = 1
    reason: str | None = None
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: float | None = 2.5
    shared: tuple[str, ...] = ()
    usage: dict[str, float] = field(default_factory=dict)
    goal: bool = False
    host: str = ""
    facts: str = ""
    exit_code: int | None = None
    log_tail: tuple[str, ...] = ()


def metric(last: float | None, best: float | None = None, nonfinite: int = 0) -> dict[str, Any]:
    bound = last if best is None else best
    return {"last": last, "min": bound, "max": bound, "step": 9, "count": 1, "nonfinite": nonfinite}


def made(jobs: list[dict[str, Any]], seen: list[Job], over: MetricTake | None = None, **settings: Any) -> Results:
    rows = table(jobs)
    options = {"metric": "acc", "maximize": True, **settings}
    return gather_results(rows, SweepSettings(**options), dict(zip(rows.ids, seen, strict=True)), over)


def accs(*values: float | None, **more: Any) -> list[Job]:
    return [Job(metrics={"acc": metric(value, **more)} if value is not None else {}) for value in values]


JOBS = grid(lr=[0.1, 0.2], epochs=[5], seed=range(2))


def read(pieces: Iterable[str]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(pieces), newline="")))


def ranked(results: Results) -> list[float | None]:
    return [row.metrics.get("acc") for row in results.rows]
