"""Jobs of today that had another id before: what `equivalences` let stand for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from monkey.plan.change import SweepPlan
from monkey.plan.compute_plan import compute_plan
from monkey.plan.observed import ObservedProject
from monkey.spec.job.equivalences import Equivalence
from monkey.spec.job.recipe import EarlierRecipe, Recipe
from tests.unit.plan.making import RECIPE, grid, seen, table, want
from tests.unit.plan.planning import CODE, JOBS, counts

RATE = replace(RECIPE, command="python train.py --lr {rate}")
RATES = grid(rate=[0.01, 0.1], seed=range(3))
RENAMED = Equivalence(renamed={"lr": "rate"}, line=3)
REFACTORED = Equivalence(code=RECIPE.code[:8], line=4)


def earlier(jobs: list[dict[str, Any]], recipe: Recipe = RECIPE) -> EarlierRecipe:
    return EarlierRecipe(recipe, frozenset(table(jobs, recipe).columns), "old", 1)


def planned(
    jobs: list[dict[str, Any]], recipe: Recipe, *items: Equivalence, was: EarlierRecipe | None = None, **observed: Any
) -> SweepPlan:
    there = {"finished": set(table(JOBS).ids), "recipes": [was or earlier(JOBS)], **observed}
    return compute_plan([want(jobs, recipe, equivalences=items)], ObservedProject(**there)).sweeps[0]


def test_a_renamed_parameter_finds_its_jobs_in_any_sweep() -> None:
    sweep = planned(RATES, RATE, RENAMED)
    assert sweep.adopted == dict(zip(table(RATES, RATE).ids, table(JOBS).ids, strict=True))
    assert counts(sweep) == (0, 0, 6, 0) and sweep.jobs.kept_states == {"adopted": 6} and sweep.revises
    assert [lot.why for lot in sweep.adoptions] == ["lr was renamed to rate (equivalences, specs/digits.yaml:3)"]
    assert planned(RATES, RATE).adopted == {} and counts(planned(RATES, RATE)) == (6, 0, 0, 0)


def test_a_rename_and_a_refactor_compose() -> None:
    both = replace(RATE, code=CODE.code)
    sweep = planned(RATES, both, RENAMED, REFACTORED)
    (lot,) = sweep.adoptions
    assert len(lot.results) == 6 and lot.codes == (RECIPE.code, CODE.code)
    assert lot.why.endswith("lr was renamed to rate, code cccccccc stands for this one "
                            "(equivalences, specs/digits.yaml:3, 4)")  # fmt: skip
    for alone in (RENAMED, REFACTORED):
        sweep = planned(RATES, both, alone)
        assert not sweep.adopted and "another part of its recipe has changed, too" in sweep.notes[0]


def test_nothing_stands_for_jobs_whose_recipe_changed_otherwise() -> None:
    assert not planned(RATES, replace(RATE, env={"A": "1"}), RENAMED).adopted
    assert not planned(RATES, replace(RATE, command="python train.py --lr {rate} --more"), RENAMED).adopted


def test_a_parameter_that_was_added_with_its_old_value() -> None:
    with_m = replace(RECIPE, command=f"{RECIPE.command} --m {{m}}")
    jobs = grid(lr=[0.01, 0.1], m=[0.0, 0.9], seed=range(3))
    sweep = planned(jobs, with_m, Equivalence(default={"m": 0}, line=2))
    assert counts(sweep) == (6, 0, 6, 0)
    assert set(sweep.adopted.values()) == set(table(JOBS).ids)
    # A parameter that some jobs never had needs no equivalence there.
    some = [*JOBS, {"lr": 0.5, "m": 0.9, "seed": 0}]
    assert counts(planned(some, RECIPE)) == (1, 0, 6, 0)


def test_a_job_that_finds_an_adopted_one_takes_the_result_at_its_end() -> None:
    older = replace(RECIPE, code="0" * 64)
    results = dict(zip(table(JOBS).ids, table(JOBS, older).ids, strict=True))
    sweep = planned(JOBS, CODE, REFACTORED, finished=set(results.values()), adoptions=results)
    assert set(sweep.adopted.values()) == set(results.values())


def test_a_name_that_would_lie_in_another_parameter_finds_nothing() -> None:
    jobs = grid(**{"o.lr": [1], "rate": [2]})
    odd = Equivalence(renamed={"o": "rate"}, line=1)
    assert not planned(jobs, RATE, odd, was=EarlierRecipe(RECIPE, frozenset({"o", "o.lr"}), "old", 1)).adopted


def test_what_runs_now_ends_by_itself_and_what_failed_or_waits_adopts() -> None:
    now = seen(JOBS, CODE, running=[0], failed=[1])
    sweep = planned(JOBS, CODE, REFACTORED, sweeps={"digits": now})
    assert sweep.jobs.kept_states == {"adopted": 5, "running": 1} and len(sweep.adopted) == 5
    assert sweep.revises and sweep.jobs.unfinished == 1


def test_jobs_whose_result_is_taken_are_not_removed() -> None:
    old = seen(JOBS, succeeded=range(6))
    sweep = planned(JOBS, CODE, REFACTORED, sweeps={"digits": old}, finished=old.succeeded)
    assert counts(sweep) == (0, 0, 6, 0) and not sweep.jobs.replaced_states and not sweep.jobs.removed_states
    part = seen(JOBS, succeeded=range(4), running=[4])
    sweep = planned(JOBS, CODE, REFACTORED, sweeps={"digits": part}, finished=part.succeeded)
    assert counts(sweep) == (0, 2, 4, 0) and sweep.jobs.replaced_states == {"running": 1, "queued": 1}
