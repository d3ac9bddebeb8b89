"""Results of older code that a plan adopts because it was asked to keep what is stale."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monkey.errors import PlanError
from monkey.plan.diff import compute_plan
from monkey.plan.observed import ObservedProject
from tests.unit.plan.making import RECIPE, seen, table, want
from tests.unit.plan.planning import CODE, EDITED, JOBS, counts, planned


def test_keep_stale_adopts_what_is_finished() -> None:
    old = seen(JOBS, succeeded=[0, 1], running=[2])
    sweep = planned(want(JOBS, CODE, code_files=EDITED), old, "code", finished=old.succeeded)
    ids = sweep.desired.table.ids
    assert counts(sweep) == (0, 4, 2, 0)
    assert sweep.adopted == {ids[0]: table(JOBS).ids[0], ids[1]: table(JOBS).ids[1]}
    assert sweep.jobs.kept_states == {"adopted": 2} and sweep.keeping == ("code",)
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
