"""Results of older code that a plan adopts because it was asked to keep what is stale."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monkey.errors import PlanError
from monkey.plan.compute_plan import compute_plan
from monkey.plan.observed import ObservedProject
from monkey.spec.job.equivalences import Equivalence
from monkey.spec.job.recipe import EarlierRecipe
from tests.unit.plan.making import RECIPE, seen, table, want
from tests.unit.plan.planning import CODE, EDITED, JOBS, counts, planned


def test_keep_stale_adopts_what_is_finished() -> None:
    old = seen(JOBS, succeeded=[0, 1], running=[2])
    sweep = planned(want(JOBS, CODE, code_files=EDITED), old, "code", finished=old.succeeded)
    ids = sweep.desired.table.ids
    assert counts(sweep) == (0, 4, 2, 0)
    assert sweep.adopted == {ids[0]: table(JOBS).ids[0], ids[1]: table(JOBS).ids[1]}
    assert sweep.jobs.kept_states == {"adopted": 2} and [lot.why for lot in sweep.adoptions] == ["--keep-stale code"]
    assert sweep.jobs.replaced_states == {"running": 1, "queued": 3}


def test_keep_stale_adopts_nothing_that_changed_for_another_reason_too() -> None:
    old = seen(JOBS, succeeded=[0])
    both = replace(CODE, env={"OMP_NUM_THREADS": "1"})
    assert planned(want(JOBS, both), old, "code", finished=old.succeeded).adopted == {}
    assert len(planned(want(JOBS, both), old, "code", "env", finished=old.succeeded).adopted) == 1


def test_an_adopted_result_stays_adopted() -> None:
    ids, old_ids = table(JOBS, CODE).ids, table(JOBS).ids
    adopted = {ids[0]: old_ids[0], ids[1]: old_ids[1]}
    applied = seen(JOBS, CODE, succeeded=[0, 1], adopted=adopted)
    unchanged = planned(want(JOBS, CODE), applied, code={CODE.code}, finished=set(old_ids[:2]))
    assert not unchanged.changes and unchanged.adopted == adopted
    fewer = planned(want(JOBS[1:], CODE), applied, finished=set(old_ids[:2]))
    assert fewer.adopted == {ids[1]: old_ids[1]}


def test_a_result_can_be_adopted_again_and_again() -> None:
    ids, old_ids = table(JOBS, CODE).ids, table(JOBS).ids
    applied = seen(JOBS, CODE, succeeded=[0], adopted={ids[0]: old_ids[0]})
    third = replace(RECIPE, code="e" * 64)
    sweep = planned(want(JOBS, third), applied, "code", finished={old_ids[0]})
    assert sweep.adopted == {table(JOBS, third).ids[0]: old_ids[0]}


@pytest.mark.parametrize("kind", ["parameter", "cod", ""])
def test_keep_stale_knows_its_reasons(kind: str) -> None:
    with pytest.raises(PlanError, match="no such reason"):
        compute_plan([want(JOBS)], ObservedProject(), [kind])


def test_adopted_results_can_be_given_up() -> None:
    ids, old_ids = table(JOBS, CODE).ids, table(JOBS).ids
    adopted = dict(zip(ids[:3], old_ids, strict=False))
    applied = seen(JOBS, CODE, succeeded=range(6), adopted=adopted)
    finished = {*old_ids[:3], *ids[2:]}  # one has finished itself meanwhile
    sweep = planned(want(JOBS, CODE), applied, "nothing", finished=finished, adoptions=adopted)
    assert counts(sweep) == (2, 0, 4, 0) and sweep.jobs.kept_states == {"succeeded": 4} and sweep.revises
    assert sweep.adopted == {ids[2]: old_ids[2]} and sweep.dropped == set(ids[:2])
    fresh = planned(want(JOBS, CODE), None, "nothing", finished=finished, adoptions=adopted)
    assert counts(fresh) == (2, 0, 4, 0) and fresh.dropped == set(ids[:2])
    given_up = planned(want(JOBS, CODE), None, finished=finished, adoptions={job: job for job in ids[:2]})
    assert counts(given_up) == (2, 0, 4, 0) and not given_up.adoptions
    with pytest.raises(PlanError, match="stands alone"):
        compute_plan([want(JOBS)], ObservedProject(), ["nothing", "code"])


def test_job_that_failed_before_adopts_nothing_by_keep_stale_and_runs_not_when_its_result_is_given_up() -> None:
    ids, old = table(JOBS, CODE).ids, seen(JOBS, succeeded=range(6))
    sweep = planned(want(JOBS, CODE), old, "code", finished=old.succeeded, failed={"digits": {ids[0]}})
    assert list(sweep.jobs.failed) == [0] and sweep.adopted.keys() == {*ids[1:]} and len(sweep.jobs.removed) == 1
    adopted = dict(zip(ids, table(JOBS).ids, strict=True))
    applied = seen(JOBS, CODE, succeeded=range(6), adopted=adopted)
    given_up = planned(
        *(want(JOBS, CODE), applied, "nothing"),
        finished=set(adopted.values()),
        adoptions=adopted,
        failed={"digits": {*ids}},
    )
    assert counts(given_up) == (0, 0, 0, 0) and len(given_up.jobs.failed) == 6
    assert given_up.revises and given_up.dropped == {*ids} and not given_up.adopted


def test_what_a_spec_still_declares_is_adopted_again() -> None:
    ids, old_ids = table(JOBS, CODE).ids, table(JOBS).ids
    adopted = dict(zip(ids, old_ids, strict=True))
    recipes = [EarlierRecipe(RECIPE, frozenset({"lr", "seed"}), "digits", 1)]
    desired = want(JOBS, CODE, equivalences=[Equivalence(code=RECIPE.code, line=1)])
    applied = seen(JOBS, CODE, succeeded=range(6), adopted=adopted)
    sweep = planned(desired, applied, "nothing", finished=set(old_ids), adoptions=adopted, recipes=recipes)
    assert counts(sweep) == (0, 0, 6, 0) and not sweep.dropped and sweep.adopted == adopted
