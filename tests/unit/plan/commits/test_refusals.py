"""Sweeps that an apply leaves as they are, and what it does with the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from monkey.errors import SweepRefused
from monkey.plan.commits.place import Refusal
from monkey.plan.commits.refusals import check_refusals
from monkey.plan.compute_plan import compute_plan
from monkey.plan.observed import ObservedProject, ObservedSweep
from monkey.plan.text.lines import format_sweep_plan, summarize_plan
from tests.unit.plan.making import RECIPE, seen, want
from tests.unit.plan.planning import JOBS


def test_a_misplaced_commit_changes_nothing_and_holds_up_no_other_sweep() -> None:
    there = {"digits": seen(JOBS, running=[0]), "other": seen(JOBS)}
    why = Refusal("last applied from a newer commit", "git pull")
    desired = [want(JOBS[:2], misplaced=why), want(JOBS[:5], name="other")]
    plan = compute_plan(desired, ObservedProject(there, code={RECIPE.code}))
    refused, other = plan.sweeps
    assert refused.refusal == why and not refused.changes and not plan.released and plan.accepted == (other,)
    assert other.changes and plan.fleets[0].jobs == len(JOBS), "what the refused sweep has now is still to be run"
    assert [line.text for line in format_sweep_plan(refused)][-2:] == [why.text, why.hint]
    with pytest.raises(SweepRefused, match="sweep 'digits': last applied from a newer commit"):
        check_refusals(plan)
    assert "1 sweep is refused" in summarize_plan(plan)
    check_refusals(compute_plan([want(JOBS, misplaced=why)], ObservedProject({"digits": seen(JOBS)})))
    forced = compute_plan(desired, ObservedProject(there), force="the old one was better")
    assert [sweep.forced for sweep in forced.sweeps] == ["the old one was better", ""] and forced.released == 0
    assert forced.sweeps[0].changes and "the old one was better" in forced.sweeps[0].notes[-1]


def test_what_a_person_cancelled_stays_so_for_ci() -> None:
    there = seen(JOBS, cancelled="too dear", cancelled_by="ann", cancelled_by_person=True)
    observed = ObservedProject({"digits": there})

    def refusal(sweep: ObservedSweep, jobs: int = 5, **options: Any) -> Refusal | None:
        return (
            compute_plan([want(JOBS[:jobs])], replace(observed, sweeps={"digits": sweep}), **options).sweeps[0].refusal
        )

    why = refusal(there, unattended=True)
    assert why is not None and why.line == (
        "stays cancelled by ann: too dear (`monkey resume digits`, or `monkey apply --force REASON`)"
    )
    (held,) = compute_plan([want(JOBS[:5])], observed, unattended=True).sweeps
    (opens,) = compute_plan([want(JOBS[:5])], observed).sweeps
    assert held.notes == (), "the refusal says it all: no note speaks of opening what stays cancelled"
    assert opens.notes == ("cancelled (too dear): a new revision or `monkey resume digits` opens it again",)
    late = Refusal("last applied from a newer commit", "git pull")
    (behind,) = compute_plan([want(JOBS[:5], misplaced=late)], observed, unattended=True).sweeps
    assert behind.notes == ("cancelled (too dear): `monkey resume digits` opens it again",), "no revision will"
    assert refusal(there) is None, "a person's new revision opens it"
    assert refusal(there, unattended=True, force="asked ann") is None
    assert refusal(there, len(JOBS), unattended=True) is None, "nothing changes"
    assert refusal(replace(there, cancelled_by_person=False), unattended=True) is None, "its own fail_fast did"
    assert refusal(replace(there, cancelled=None, paused=True), unattended=True) is None, "a pause survives"
