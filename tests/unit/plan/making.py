"""Values to plan with, made in one line each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from monkey.plan.desired import DesiredSweep
from monkey.plan.observed import ObservedSweep
from monkey.spec.job.job_id import assign_job_ids, dump_canonical_json
from monkey.spec.job.job_table import ABSENT, JobTable, ParameterColumn
from monkey.spec.job.recipe import Recipe, SweepSettings

RECIPE = Recipe(command="python train.py --lr {lr}", code="c" * 64)
FILES = {"train.py": "t1", "model.py": "m1"}


def grid(**values: Iterable[Any]) -> list[dict[str, Any]]:
    return [dict(zip(values, point, strict=True)) for point in product(*values.values())]


def table(jobs: Iterable[Mapping[str, Any]], recipe: Recipe = RECIPE) -> JobTable:
    jobs = list(jobs)
    columns: dict[str, ParameterColumn] = {}
    for name in dict.fromkeys(name for job in jobs for name in job):
        values: dict[str, Any] = {}
        for job in jobs:
            if name in job:
                values.setdefault(dump_canonical_json(job[name]), job[name])
        at = {text: index for index, text in enumerate(values)}
        columns[name] = ParameterColumn(
            list(values.values()), [at[dump_canonical_json(job[name])] if name in job else ABSENT for job in jobs]
        )
    return assign_job_ids(JobTable([""] * len(jobs), columns), recipe)


@dataclass(frozen=True)
class Revision:
    recipe: Recipe
    settings: SweepSettings
    table: JobTable
    code_files: dict[str, str] = field(default_factory=lambda: FILES)
    git: dict[str, Any] | None = None
    adopted: dict[str, str] = field(default_factory=dict)
    spec_text: str = ""
    source: str = "specs/digits.yaml"
    author: str = ""
    at: str = ""
    force: str = ""
    restores: int = 0
    plan: str = ""
    strict: bool = True


def want(jobs: Iterable[Mapping[str, Any]], recipe: Recipe = RECIPE, **options: Any) -> DesiredSweep:
    options = {"name": "digits", "settings": SweepSettings(), "code_files": FILES, "code_bytes": 1000, **options}
    source = f"specs/{options['name']}.yaml"
    return DesiredSweep(source=source, recipe=recipe, table=table(jobs, recipe), **options)


def seen(
    jobs: Iterable[Mapping[str, Any]],
    recipe: Recipe = RECIPE,
    *,
    settings: SweepSettings | None = None,
    files: dict[str, str] | None = None,
    succeeded: Collection[int] = (),
    failed: Collection[int] = (),
    running: Collection[int] = (),
    adopted: dict[str, str] | None = None,
    git: dict[str, Any] | None = None,
    **options: Any,
) -> ObservedSweep:
    """A sweep that was applied; `succeeded`, `failed` and `running` are rows."""
    made = table(jobs, recipe)
    revision = Revision(recipe, settings or SweepSettings(), made, files or FILES, git, adopted or {})
    sets = {name: {made.ids[row] for row in rows} for name, rows in
            (("succeeded", succeeded), ("failed", failed), ("running", running))}  # fmt: skip
    return ObservedSweep(**{"head": 1, "applied": revision, "applied_at": 1, **sets, **options})
