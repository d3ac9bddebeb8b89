"""Every case of this directory: from a spec and what was observed to the plan, through the real loading."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from monkey.plan.change import Plan
from monkey.plan.compute_plan import compute_plan
from monkey.plan.desired import DesiredSweep
from monkey.plan.observed import ObservedProject, ObservedSweep
from monkey.plan.text.markdown import format_markdown
from monkey.plan.text.plan_document import serialize_plan
from monkey.spec.job.job_id import assign_job_ids
from monkey.spec.job.job_table import JobTable
from monkey.spec.job.recipe import EarlierRecipe, Recipe, SweepSettings
from monkey.spec.parameters.conditions import parse_condition
from monkey.spec.sweep.expand import expand_spec
from monkey.spec.sweep.load import load_spec, parse_spec, place_equivalences
from monkey.spec.sweep.models import Spec

HERE = Path(__file__).parent
CASES = sorted(path.parent for path in HERE.glob("*/spec.yaml"))


@dataclass(frozen=True)
class Revision:
    recipe: Recipe
    settings: SweepSettings
    table: JobTable
    code_files: Mapping[str, str]
    git: None
    adopted: Mapping[str, str]
    spec_text: str = ""
    source: str = "spec.yaml"
    author: str = ""
    at: str = ""
    force: str = ""
    restores: int = 0
    plan: str = ""


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def recipe_of(spec: Spec, tree: Mapping[str, str]) -> Recipe:
    return spec.recipe(sha(json.dumps(tree, sort_keys=True)))


def hashes(tree: Mapping[str, str]) -> dict[str, str]:
    return {path: sha(text) for path, text in tree.items()}


def seen(name: str, told: Mapping[str, Any], root: Path) -> ObservedSweep:
    spec = parse_spec(json.dumps({"name": name, **told["spec"]}), f"{name}.yaml", root)
    recipe = recipe_of(spec, told["tree"])
    table = assign_job_ids(expand_spec(spec)[0], recipe)
    sets = {
        state: {job for job, values in table.rows() if parse_condition(told[state], values).holds(values)}
        for state in ("succeeded", "failed", "running")
        if state in told
    }
    revision = Revision(recipe, spec.settings(), table, hashes(told["tree"]), None, {})
    rest = {key: told[key] for key in ("paused", "cancelled", "expires", "over") if key in told}
    unmarked = tuple(told.get("unmarked", ()))
    return ObservedSweep(told["head"], revision, told["head"], **rest, **sets, unmarked=unmarked)


def adopting(sweep: ObservedSweep, sweeps: Mapping[str, ObservedSweep], source: str | None) -> ObservedSweep:
    """Let each job adopt what the job of the same row of another sweep has, if that has finished."""
    if source is None or sweep.applied is None or (of := sweeps[source].applied) is None:
        return sweep
    rows = zip(sweep.applied.table.ids, of.table.ids, strict=True)
    adopted = {job: result for job, result in rows if result in sweeps[source].succeeded}
    assert isinstance(sweep.applied, Revision)
    return replace(sweep, applied=replace(sweep.applied, adopted=adopted), succeeded={*sweep.succeeded, *adopted})


def earlier(name: str, sweep: ObservedSweep, told: Mapping[str, Any]) -> EarlierRecipe:
    assert sweep.applied is not None
    names = frozenset(sweep.applied.table.columns)
    return EarlierRecipe(
        sweep.applied.recipe, names, name, sweep.head, told.get("commit", ""), told.get("dirty", False)
    )


def planned(case: Path) -> Plan:
    told = json.loads((case / "observed.json").read_text())
    spec = load_spec(case / "spec.yaml", case)
    recipe = recipe_of(spec, told["tree"])
    desired = DesiredSweep(
        name=spec.name,
        source=spec.source,
        recipe=recipe,
        settings=spec.settings(),
        table=assign_job_ids(expand_spec(spec)[0], recipe),
        code_files=hashes(told["tree"]),
        code_bytes=sum(map(len, told["tree"].values())),
        equivalences=place_equivalences(spec),
    )
    sweeps = {name: seen(name, sweep, case) for name, sweep in told["sweeps"].items()}
    finished = {job for sweep in sweeps.values() for job in sweep.succeeded}
    sweeps = {name: adopting(sweep, sweeps, told["sweeps"][name].get("adopts")) for name, sweep in sweeps.items()}
    code = {sweep.applied.recipe.code for sweep in sweeps.values() if sweep.applied}
    failed = {job for sweep in sweeps.values() for job in sweep.failed}
    if before := told.get("failed_before"):
        failed |= {job for job, values in desired.table.rows() if parse_condition(before, values).holds(values)}
    observed = ObservedProject(
        sweeps,
        finished,
        code,
        told.get("agents", {}),
        store="5t0re",
        at=told.get("at", 0.0),
        failed={desired.name: failed},
        recipes=[earlier(name, sweep, told["sweeps"][name]) for name, sweep in sweeps.items()],
    )
    return compute_plan([desired], observed, told.get("keep_stale", ()))


def test_there_are_cases() -> None:
    assert len(CASES) >= 12


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_plan(case: Path) -> None:
    plan = planned(case)
    text = json.dumps(serialize_plan(plan), indent=2, ensure_ascii=False) + "\n"
    expected = case / "plan.json"
    if os.environ.get("REWRITE_PLANS"):
        expected.write_text(text)
    assert text == expected.read_text()
    assert format_markdown(plan).startswith("### monkey plan: ")
