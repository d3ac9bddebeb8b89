"""What a plan makes of the jobs of a spec, beside those that were applied: new, stale, kept, removed, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.errors import PlanError
from monkey.plan.change import FleetPlan, Plan
from monkey.plan.compute_plan import compute_plan
from monkey.plan.jobs.job_changes import StaleReason
from monkey.plan.observed import ObservedProject
from monkey.plan.work import find_remaining_work
from monkey.spec.job.recipe import JobResources, SweepSettings
from tests.unit.plan.making import RECIPE, grid, seen, table, want
from tests.unit.plan.planning import CODE, DONE, EDITED, JOBS, counts, planned, why


def test_a_sweep_never_applied_is_all_new() -> None:
    sweep = planned(want(JOBS))
    assert counts(sweep) == (6, 0, 0, 0)
    assert sweep.changes and sweep.first and sweep.head == 0


def test_an_unchanged_sweep_changes_nothing() -> None:
    sweep = planned(want(JOBS), seen(JOBS, succeeded=[0, 1], failed=[2], running=[3]))
    assert counts(sweep) == (0, 0, 6, 0)
    assert sweep.jobs.kept_states == {"succeeded": 2, "failed": 1, "running": 1, "queued": 2}
    assert not sweep.changes


def test_another_order_of_jobs_changes_nothing() -> None:
    assert not planned(want(JOBS[::-1]), seen(JOBS)).changes


def test_an_added_value_makes_its_jobs_new_and_no_other() -> None:
    sweep = planned(want(grid(lr=[0.01, 0.03, 0.1], seed=range(3))), seen(JOBS, succeeded=[0]))
    assert counts(sweep) == (3, 0, 6, 0)
    assert sweep.jobs.kept_states == {"succeeded": 1, "queued": 5}
    assert [sweep.desired.table.parameters(row)["lr"] for row in sweep.jobs.new] == [0.03] * 3


def test_removed_jobs_say_how_far_they_were() -> None:
    sweep = planned(want(grid(lr=[0.01], seed=range(3))), seen(JOBS, succeeded=[3], running=[4]))
    assert counts(sweep) == (0, 0, 3, 3)
    assert sweep.jobs.removed_states == {"succeeded": 1, "running": 1, "queued": 1}
    assert sweep.released == 1 and sweep.changes


def test_changed_code_makes_all_jobs_stale_and_names_the_file() -> None:
    sweep = planned(want(JOBS, CODE, code_files=EDITED), seen(JOBS, succeeded=[0, 1], running=[2]))
    assert counts(sweep) == (0, 6, 0, 0)
    assert why(sweep) == ["code changed: train.py"]
    assert sweep.jobs.replaced_states == {"succeeded": 2, "running": 1, "queued": 3}
    assert sweep.released == 1
    assert sweep.upload == (1000, 1)


def test_stale_jobs_know_which_job_they_take_the_place_of() -> None:
    sweep = planned(want(JOBS[::-1], CODE), seen(JOBS))
    (group,) = sweep.jobs.stale
    assert [(row, 5 - before) for row, before in zip(group.rows, group.before, strict=True)] == [
        (row, row) for row in range(6)
    ]


def test_new_stale_and_removed_at_once() -> None:
    sweep = planned(want(grid(lr=[0.1, 0.3], seed=range(3)), CODE), seen(JOBS))
    assert counts(sweep) == (3, 3, 0, 3)


def test_an_added_parameter_makes_jobs_stale_and_says_so() -> None:
    jobs = grid(lr=[0.1, 0.3], seed=range(3), momentum=[0, 0.9])
    sweep = planned(want(jobs), seen(JOBS))
    assert counts(sweep) == (6, 6, 0, 3)
    assert why(sweep) == ["parameter added: momentum"]


def test_a_removed_parameter_replaces_all_its_old_jobs() -> None:
    sweep = planned(want(grid(lr=[0.01, 0.1])), seen(JOBS))
    assert counts(sweep) == (0, 2, 0, 0)
    assert why(sweep) == ["parameter removed: seed"]
    assert sum(sweep.jobs.replaced_states.values()) == 6


def test_a_parameter_that_only_some_jobs_have_is_a_reason_only_for_those() -> None:
    jobs = [{"lr": 0.01}, {"lr": 0.1, "hidden": 32}, {"lr": 0.1, "hidden": 64}]
    old = grid(lr=[0.01, 0.1])
    assert why(planned(want(jobs), seen(old))) == ["parameter added: hidden"]
    assert counts(planned(want(jobs), seen(old))) == (0, 2, 1, 0)
    both = planned(want(jobs, CODE, code_files=EDITED), seen(old))
    assert sorted(why(both)) == ["code changed: train.py", "code changed: train.py; parameter added: hidden"]


def test_a_job_beside_one_that_is_kept_is_new_not_stale() -> None:
    sweep = planned(want([{"lr": 0.1}, {"lr": 0.1, "hidden": 32}]), seen([{"lr": 0.1}]))
    assert counts(sweep) == (1, 0, 1, 0)


def test_tables_without_a_common_parameter_are_strangers() -> None:
    assert counts(planned(want(grid(rate=[0.1, 0.2])), seen(grid(lr=[0.1, 0.2])))) == (2, 0, 0, 2)


def test_a_table_without_parameters_and_one_with_are_strangers() -> None:
    assert counts(planned(want([{}], CODE), seen(grid(lr=[0.1, 0.2])))) == (1, 0, 0, 2)
    assert counts(planned(want(grid(lr=[0.1, 0.2]), CODE), seen([{}]))) == (2, 0, 0, 1)


def test_a_job_without_parameters_can_be_stale() -> None:
    assert counts(planned(want([{}], CODE), seen([{}]))) == (0, 1, 0, 0)


def test_values_of_other_types_are_other_jobs() -> None:
    assert counts(planned(want([{"x": 1.0}, {"x": True}, {"x": "1"}]), seen([{"x": 1}]))) == (3, 0, 0, 1)
    assert counts(planned(want([{"x": 1.0}], CODE), seen([{"x": 1}]))) == (1, 0, 0, 1)


def test_lists_and_objects_are_matched_by_what_they_say() -> None:
    jobs = [{"x": [1, 2]}, {"x": {"b": 1, "a": 2}}]
    assert counts(planned(want(jobs, CODE), seen([{"x": [1, 2]}, {"x": {"a": 2, "b": 1}}]))) == (0, 2, 0, 0)


def test_a_job_finished_in_another_sweep_is_kept_and_says_where() -> None:
    other = seen(JOBS, succeeded=[0, 1])
    finished = {*other.succeeded, "0" * 16}
    sweep = compute_plan([want(JOBS)], ObservedProject({"other": other}, finished)).sweeps[0]
    assert counts(sweep) == (4, 0, 2, 0)
    assert sweep.jobs.elsewhere == {"other": 2} and sweep.jobs.kept_states == {"succeeded": 2}


def test_a_job_that_failed_before_is_no_work_though_the_sweep_is_revised_for_it() -> None:
    more, failed = grid(lr=[0.01, 0.1, 0.3], seed=range(3)), {"digits": set(table([{"lr": 0.3, "seed": 0}]).ids)}
    world = ObservedProject({"digits": seen(JOBS, failed=[0])}, failed=failed)
    sweep = compute_plan([want([*JOBS, more[6]])], world).sweeps[0]
    assert list(sweep.jobs.failed) == [6] and sweep.jobs.failed_in == {"": 1} and sweep.revises
    assert sweep.jobs.lots == {"new": 0, "stale": 0, "kept": 6, "failed before": 1, "removed": 0}
    plan = compute_plan([want(more)], world)
    assert counts(plan.sweeps[0]) == (2, 0, 6, 0) and plan.sweeps[0].jobs.unfinished == plan.fleets[0].jobs == 7
    assert find_remaining_work(plan.sweeps[0]).count == len(list(find_remaining_work(plan.sweeps[0]).jobs())) == 7
    finished = replace(world, finished=failed["digits"])
    assert not compute_plan([want(more)], finished).sweeps[0].jobs.failed, "one that has succeeded since is kept"


def test_jobs_finished_in_several_sweeps_are_counted_once() -> None:
    sweeps = {name: seen(JOBS[:n], succeeded=range(n)) for name, n in (("a", 2), ("b", 3), ("digits", 1))}
    sweep = compute_plan([want(JOBS)], ObservedProject(sweeps, set(table(JOBS).ids[:4]))).sweeps[0]
    assert sweep.jobs.elsewhere == {"a": 1, "b": 1, "": 1}
    assert sweep.jobs.kept_states == {"succeeded": 4}


def test_a_job_finished_before_and_wanted_again_is_kept() -> None:
    again = table(JOBS).ids[5]
    sweep = planned(want(JOBS), seen(JOBS[:5]), finished={again})
    assert counts(sweep) == (0, 0, 6, 0)
    assert sweep.jobs.elsewhere == {"": 1} and sweep.jobs.kept_states == {"queued": 5, "succeeded": 1}
    assert sweep.changes


def test_settings_change_without_a_stale_job() -> None:
    after = SweepSettings(max_retries=3, timeout=60, resources=JobResources(cpus=2))
    sweep = planned(want(JOBS, settings=after), seen(JOBS))
    assert counts(sweep) == (0, 0, 6, 0) and sweep.changes
    assert sweep.settings == (("max_retries", 0, 3), ("timeout", None, 60), ("resources.cpus", 1, 2))


def test_raised_retries_say_what_they_reopen_and_failures_that_nothing_does() -> None:
    sweep = planned(want(JOBS, settings=SweepSettings(max_retries=1)), seen(JOBS, failed=[0, 1]))
    assert sweep.notes == ("max_retries is raised: up to 2 failed jobs are tried again",)
    assert planned(want(JOBS), seen(JOBS, failed=[0])).notes == ("1 job has failed: `monkey retry digits` tries again",)


def test_an_apply_that_was_cut_short_is_a_change() -> None:
    sweep = planned(want(JOBS), seen(JOBS, unmarked=("local",)))
    assert sweep.changes and not sweep.revises and sweep.unmarked == ("local",)


def test_a_revision_to_come_marks_its_own_work() -> None:
    assert planned(want(JOBS[:5]), seen(JOBS, unmarked=("local",))).unmarked == ()


def test_code_missing_from_the_store_is_a_change_while_jobs_need_it() -> None:
    unfinished = planned(want(JOBS), seen(JOBS), code=set())
    assert unfinished.changes and not unfinished.revises and unfinished.upload == (1000, 1)
    assert not planned(want(JOBS), seen(JOBS, succeeded=range(6)), code=set()).changes


def test_code_of_two_sweeps_is_uploaded_once() -> None:
    plan = compute_plan([want(JOBS), want(JOBS, name="other")], ObservedProject())
    assert [sweep.upload.bytes for sweep in plan.sweeps] == [1000, 0]


def test_work_without_an_agent_is_a_change() -> None:
    sweeps = {"digits": seen(JOBS, succeeded=range(5))}
    plan = compute_plan([want(JOBS)], ObservedProject(sweeps, code={RECIPE.code}))
    assert plan.changes and not plan.sweeps[0].changes
    assert [(fleet.fleet, fleet.jobs, fleet.agents) for fleet in plan.fleets] == [("local", 1, 0)]
    assert not compute_plan([want(JOBS)], replace(DONE, sweeps=sweeps)).changes
    assert not compute_plan([want(JOBS)], ObservedProject({"digits": seen(JOBS, succeeded=range(6))})).changes


def test_failed_jobs_need_no_agent() -> None:
    sweeps = {"digits": seen(JOBS, succeeded=range(5), failed=[5])}
    assert not compute_plan([want(JOBS)], ObservedProject(sweeps, code={RECIPE.code})).changes


@pytest.mark.parametrize("state", [{"paused": True}, {"cancelled": "by hand"}])
def test_a_sweep_that_is_held_needs_no_agent_and_says_how_to_go_on(state: dict[str, object]) -> None:
    plan = compute_plan([want(JOBS)], ObservedProject({"digits": seen(JOBS, **state)}, code={RECIPE.code}))
    assert not plan.changes
    assert any("`monkey resume digits`" in note for note in plan.sweeps[0].notes)


def test_a_sweep_that_fails_fast_is_tried_again_and_not_just_resumed() -> None:
    state = seen(JOBS, failed=[0], cancelled="fail_fast: job failed", settings=SweepSettings(fail_fast=True))
    notes = planned(want(JOBS, settings=SweepSettings(fail_fast=True)), state).notes
    assert not any("resume" in note for note in notes), notes
    assert all("`monkey retry digits`" in note for note in notes) and len(notes) == 2


def test_jobs_whose_data_the_store_lacks_are_told_to_push_first() -> None:
    (note,) = planned(want(JOBS), seen(JOBS, failed=[0], lacks_data=True)).notes
    assert note == "1 job has failed: `monkey push` where the data is, then `monkey retry digits`, tries again"


def test_a_new_revision_ends_a_cancellation_but_not_a_pause() -> None:
    cancelled = compute_plan([want(JOBS[:5])], ObservedProject({"digits": seen(JOBS, cancelled="fail_fast")}))
    paused = compute_plan([want(JOBS[:5])], ObservedProject({"digits": seen(JOBS, paused=True)}))
    assert (cancelled.fleets[0].jobs, paused.fleets[0].jobs) == (5, 0)


def test_a_fleet_counts_the_work_of_sweeps_that_are_not_planned() -> None:
    others = {"a": seen(grid(lr=[1], seed=range(6)), running=[0]), "b": seen(JOBS, paused=True)}
    assert compute_plan([want(JOBS)], ObservedProject(others)).fleets[0].jobs == 12


def test_two_specs_of_one_name_are_refused() -> None:
    with pytest.raises(PlanError, match="two specs are named 'digits'"):
        compute_plan([want(JOBS), want(JOBS)], ObservedProject())


def test_an_identity_that_nobody_can_explain_is_stale_with_that_reason() -> None:
    later = replace(RECIPE, command="python train.py  --lr {lr}")
    sweep = planned(replace(want(JOBS, later), recipe=RECIPE), seen(JOBS))
    assert [group.reasons for group in sweep.jobs.stale] == [
        (StaleReason("identity", "identity changed: applied by another version of monkey"),)
    ]


_VALUES = st.lists(st.sampled_from([0.1, 0.2, 0.3, 1, "a"]), min_size=1, max_size=4, unique_by=repr)


@given(_VALUES, _VALUES, _VALUES, _VALUES, st.booleans(), st.booleans())
def test_lots_part_both_tables(
    a: list[object], b: list[object], c: list[object], d: list[object], recoded: bool, extra: bool
) -> None:
    jobs = grid(x=a, y=b, **({"z": [0, 1]} if extra else {}))
    desired, applied = want(jobs, CODE if recoded else RECIPE), seen(grid(x=c, y=d))
    sweep = planned(desired, applied)
    stale = [row for group in sweep.jobs.stale for row in group.rows]
    assert sorted([*sweep.jobs.new, *stale, *sweep.jobs.kept]) == list(range(len(jobs)))
    assert applied.applied is not None
    replaced = sum(sweep.jobs.replaced_states.values())
    assert len(sweep.jobs.kept) + replaced + len(sweep.jobs.removed) == len(applied.applied.table)
    assert sum(sweep.jobs.kept_states.values()) == len(sweep.jobs.kept)
    for group in sweep.jobs.stale:
        for row, before in zip(group.rows, group.before, strict=True):
            old = applied.applied.table.parameters(before)
            assert old.items() <= desired.table.parameters(row).items()


def test_a_plan_without_sweeps_changes_nothing() -> None:
    assert not Plan(()).changes


@pytest.mark.parametrize(
    ("fleet", "changes"),
    [
        (FleetPlan("local", 1, 0), True),
        (FleetPlan("local", 1, 1), False),
        (FleetPlan("local", 0, 0), False),
        (FleetPlan("aws", 9, 1, "aws", 1, 2), True),
        (FleetPlan("aws", 9, 0, "aws", 2, 2), False),
    ],
)
def test_what_a_fleet_changes(fleet: FleetPlan, changes: bool) -> None:
    assert Plan((), (fleet,)).changes is changes
