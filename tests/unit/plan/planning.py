"""Plans of one sweep, and what they say."""

from __future__ import annotations

from dataclasses import replace

from monkey.plan.change import SweepPlan
from monkey.plan.compute_plan import compute_plan
from monkey.plan.desired import DesiredSweep
from monkey.plan.observed import ObservedProject, ObservedSweep
from tests.unit.plan.making import FILES, RECIPE, grid

JOBS = grid(lr=[0.01, 0.1], seed=range(3))
CODE = replace(RECIPE, code="d" * 64)
EDITED = {**FILES, "train.py": "t2"}
DONE = ObservedProject(code={RECIPE.code}, agents={"local": 1})


def planned(desired: DesiredSweep, sweep: ObservedSweep | None = None, *keep: str, **observed: object) -> SweepPlan:
    sweeps = {desired.name: sweep} if sweep else {}
    return compute_plan(
        [desired], ObservedProject(**{"sweeps": sweeps, "code": {RECIPE.code}, **observed}), keep
    ).sweeps[0]


def counts(sweep: SweepPlan) -> tuple[int, ...]:
    return tuple(sweep.jobs.counts.values())


def why(sweep: SweepPlan) -> list[str]:
    return [group.why for group in sweep.jobs.stale]
