"""A sweep of ten jobs that was applied, and a plan that changes everything of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from monkey.plan.change import Plan
from monkey.plan.compute_plan import compute_plan
from monkey.plan.observed import ObservedProject
from monkey.spec.job.recipe import SweepSettings
from tests.unit.plan.making import FILES, RECIPE, grid, seen, want

JOBS = grid(lr=[0.01, 0.1], seed=range(5))
EDITED = {**FILES, "train.py": "t2"}
CODE = replace(RECIPE, code="d" * 64)
OLD = seen(JOBS, succeeded=range(3), running=[5], head=4, applied_at=2)
WORLD = ObservedProject({"digits": OLD}, OLD.succeeded, {RECIPE.code}, {"local": 1}, store="s1")


def edited(**options: Any) -> Plan:
    """Return a plan with jobs of every kind."""
    settings = SweepSettings(max_retries=3)
    jobs = grid(lr=[0.1, 0.3], seed=range(5))
    return compute_plan([want(jobs, CODE, code_files=EDITED, settings=settings, **options)], WORLD)
