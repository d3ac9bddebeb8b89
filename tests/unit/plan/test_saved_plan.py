"""A saved plan: what it is bound to, and what it is not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from monkey.errors import PlanError, StalePlan
from monkey.plan.change import FleetPlan, Plan
from monkey.plan.compute_plan import compute_plan
from monkey.plan.gone_sweeps import GoneSweep
from monkey.plan.observed import ObservedProject
from monkey.plan.saved_plan import dump_saved_plan, parse_saved_plan, verify_saved_plan
from monkey.spec.job.recipe import SweepSettings
from tests.unit.plan.making import grid, seen, want
from tests.unit.plan.sweep_of_ten import CODE, EDITED, JOBS, OLD, WORLD, edited


def test_a_saved_plan_fits_the_world_it_was_made_in() -> None:
    saved = parse_saved_plan(dump_saved_plan(edited(), ["specs/digits.yaml"]))
    assert (saved.specs, saved.keep_stale, saved.prune) == (("specs/digits.yaml",), (), False)
    verify_saved_plan(saved, edited())


def test_progress_makes_no_saved_plan_stale() -> None:
    before = compute_plan([want(JOBS)], WORLD)
    after = compute_plan(
        [want(JOBS)], replace(WORLD, sweeps={"digits": seen(JOBS, succeeded=range(9), head=4)}, agents={})
    )
    verify_saved_plan(parse_saved_plan(dump_saved_plan(before, [])), after)


def test_more_to_adopt_is_progress_and_less_is_not() -> None:
    desired = [want(JOBS, CODE, code_files=EDITED)]
    few, many = (
        compute_plan(desired, replace(WORLD, finished=set(OLD.applied.table.ids[:n])), ["code"]) for n in (3, 5)
    )
    verify_saved_plan(parse_saved_plan(dump_saved_plan(few, [])), many)
    with pytest.raises(StalePlan, match="2 results that it would have adopted"):
        verify_saved_plan(parse_saved_plan(dump_saved_plan(many, [])), few)


#: A plan that adds five jobs.
MORE = grid(lr=[0.01, 0.1, 0.5], seed=range(5))
ADDS = compute_plan([want(MORE)], WORLD)
INPUTS = {"max_slots": 2}


def moved(saved: Plan, fresh: Plan) -> list[str]:
    """Return what a saved plan says that moved."""
    try:
        verify_saved_plan(parse_saved_plan(dump_saved_plan(saved, [])), fresh)
    except StalePlan as exc:
        return [line.strip() for line in exc.message.splitlines()[1:]]
    return []


@pytest.mark.parametrize(
    ("fresh", "told"),
    [
        (compute_plan([want(MORE)], replace(WORLD, sweeps={"digits": replace(OLD, applied_at=5)})), "from 2 to 5"),
        (compute_plan([want(MORE, CODE, code_files=EDITED)], WORLD), "code changed: train.py"),
        (compute_plan([want(JOBS[1:])], WORLD), "its parameters changed: 15 → 9 jobs"),
        (compute_plan([want(JOBS)], WORLD), "its parameters changed: 15 → 10 jobs"),
        (compute_plan([want(grid(lr=[0.01, 0.1, 0.6], seed=range(5)))], WORLD), "its parameters changed: 15 → 15"),
        (compute_plan([want(MORE, settings=SweepSettings(max_retries=1))], WORLD), "max_retries 0 → 1"),
        (compute_plan([want(MORE)], replace(WORLD, store="s2")), "the store is another one"),
        (compute_plan([], WORLD), "sweep digits: its spec is gone"),
        (compute_plan([want(MORE), want(JOBS, name="more")], WORLD), "sweep more: it changes now (7 new, 3 kept)"),
        (
            compute_plan([want(MORE)], replace(WORLD, sweeps={"digits": replace(OLD, cancelled="too dear")})),
            "it was cancelled, and this plan would open it again",
        ),
        (ADDS.with_fleets([FleetPlan("local", 7, 1, "aws", 1, 1, INPUTS)]), "provider local: what its machines"),
        (replace(ADDS, gone=(GoneSweep("b", "specs/b.yaml", 3, 1, 0, pruned=True),)), "sweep b: whether it is cancel"),
    ],
)
def test_whatever_moved_is_named(fresh: Plan, told: str) -> None:
    (line,) = moved(ADDS, fresh)
    assert told in line


@pytest.mark.parametrize(
    "world",
    [
        replace(WORLD, sweeps={"digits": replace(OLD, head=9, paused=True)}),
        replace(WORLD, sweeps={"digits": replace(OLD, head=9, expires=9e9)}),
        replace(WORLD, sweeps={"digits": OLD, "other": seen(JOBS, head=7, applied_at=7)}),
        replace(WORLD, code=frozenset(), at=1e9),
    ],
)
def test_others_and_orders_leave_a_saved_plan_valid(world: ObservedProject) -> None:
    assert not moved(ADDS, compute_plan([want(MORE)], world))


def test_a_sweep_without_changes_must_have_none_later() -> None:
    kept = want(JOBS, name="kept")
    before = replace(WORLD, sweeps={"digits": OLD, "kept": seen(JOBS)})
    saved = compute_plan([want(MORE), kept], before)
    assert list(json.loads(dump_saved_plan(saved, []))["saved"]["sweeps"]) == ["digits"]
    after = replace(before, sweeps={"digits": OLD, "kept": seen(JOBS, head=5, applied_at=5)})
    assert not moved(saved, compute_plan([want(MORE), kept], after)), "somebody applied the same again"
    (line,) = moved(saved, compute_plan([want(MORE), want(JOBS[2:], name="kept")], before))
    assert line == "sweep kept: it changes now (8 kept, 2 removed, from revision 1)"


def test_the_first_apply_of_a_store_is_not_another_store() -> None:
    first = compute_plan([want(JOBS)], ObservedProject())
    assert not moved(first, compute_plan([want(JOBS)], ObservedProject(store="s1")))
    (line,) = moved(first, compute_plan([want(JOBS)], replace(WORLD, sweeps={"digits": seen(JOBS)})))
    assert line == "sweep digits: its newest revision went from 0 to 1: this plan was applied already"


def test_own_apply_is_not_taken_for_somebody_else_s() -> None:
    saved = parse_saved_plan(dump_saved_plan(compute_plan([want(JOBS)], ObservedProject(store="s1")), []))
    applied = replace(WORLD, store="s1", sweeps={"digits": seen(JOBS)})
    with pytest.raises(StalePlan, match="from 0 to 1: this plan was applied already"):
        verify_saved_plan(saved, compute_plan([want(JOBS)], applied))
    other = replace(applied, sweeps={"digits": seen(JOBS[1:])})
    with pytest.raises(StalePlan, match="from 0 to 1: it was changed meanwhile"):
        verify_saved_plan(saved, compute_plan([want(JOBS)], other))


def test_all_that_moved_is_named_at_once() -> None:
    with pytest.raises(StalePlan) as raised:
        verify_saved_plan(parse_saved_plan(dump_saved_plan(ADDS, [])), edited())
    assert raised.value.message.count("\n") == 2


@pytest.mark.parametrize("text", ["", "{}", "[]", "3", '{"format": 1, "saved": 3}', "[" * 100_000, '{"format": 1}'])
def test_what_is_no_saved_plan_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match=r"plan\.json is not a saved plan"):
        parse_saved_plan(text, "plan.json")


KEYS = ["revision", "before", "reopened", "equivalences", "recipe"]
KEYS += ["settings", "jobs", "table", "code_files", "adopted"]


@pytest.mark.parametrize("key", KEYS)
def test_a_saved_plan_that_lacks_or_twists_a_binding_is_refused(key: str) -> None:
    for broken in (None, 1.5, {"x": 1} if key != "code_files" and key != "adopted" else []):
        data = json.loads(dump_saved_plan(edited(), []))
        data["saved"]["sweeps"]["digits"][key] = broken
        with pytest.raises(PlanError, match="not a saved plan"):
            parse_saved_plan(json.dumps(data))


def test_a_saved_plan_of_a_newer_monkey_says_so() -> None:
    with pytest.raises(PlanError, match="newer monkey"):
        parse_saved_plan('{"format": 2}')
