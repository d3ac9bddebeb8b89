"""Sides and comparisons to test with, made in one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from monkey.results.comparison.compared_metric import ComparedMetric
from monkey.results.comparison.job_pairs import ComparedSide, explain_no_pairs, find_seeds, match_jobs
from monkey.results.comparison.sweep_comparison import SweepComparison, compare_sides
from monkey.results.result_rows import gather_results
from monkey.spec.job.recipe import Recipe, SweepSettings
from tests.unit.plan.making import grid, table
from tests.unit.results.sample_results import Job, metric

ACC = ComparedMetric("acc", maximize=True, take="last")


def side(role: str, jobs: list[dict[str, Any]], seen: Sequence[Job], code: str = "") -> ComparedSide:
    """Return a side; its code makes its jobs others than those of a side with the same parameters."""
    rows = table(jobs, Recipe(command="train", code=code or role))
    settings = SweepSettings(metric=ACC.name, maximize=ACC.maximize)
    results = gather_results(rows, settings, dict(zip(rows.ids, seen, strict=True)))
    return ComparedSide(role, f"{role.lower()}@1", results, {})


def logged(*values: float | None) -> list[Job]:
    """Return jobs that have succeeded with these values; None: it logged nothing."""
    return [Job(metrics={} if value is None else {"acc": metric(value)}) for value in values]


def sides(of: Callable[[str, dict[str, Any]], Job], **values: Any) -> tuple[ComparedSide, ComparedSide]:
    """Return both sides of a grid; `of` makes each job by its role and parameters."""
    jobs = grid(**values)
    base, head = (side(role, jobs, [of(role, job) for job in jobs]) for role in ("BASE", "HEAD"))
    return base, head


def compared(
    base: ComparedSide, head: ComparedSide, *ignored: str, limit: float = 0.0, seeds: tuple[str, ...] = ()
) -> SweepComparison:
    """Compare as the verb does."""
    repeats = find_seeds(base, head, seeds)
    paired = match_jobs(base, head, ACC.name, ignored, repeats)
    return compare_sides(base, head, paired, ACC, limit, explain_no_pairs(base, head, ignored, repeats))
