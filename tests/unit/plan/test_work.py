"""What is left to do for a fleet: a job that several sweeps have is counted once, by what asks for most."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from monkey.plan.change import FleetPlan
from monkey.plan.compute_plan import compute_plan
from monkey.plan.desired import DesiredSweep
from monkey.plan.observed import ObservedProject, ObservedSweep
from monkey.plan.work import find_remaining_work
from monkey.spec.job.recipe import JobResources, SweepSettings
from monkey.spec.job.stop_when import StopEvidence
from tests.unit.plan.making import RECIPE, grid, seen, want
from tests.unit.plan.planning import CODE, JOBS

BIG = JobResources(cpus=4)


def fleet(desired: list[DesiredSweep], **others: ObservedSweep) -> FleetPlan:
    """Return the only fleet of a plan."""
    (part,) = compute_plan(desired, ObservedProject(others)).fleets
    return part


def test_a_job_of_two_planned_sweeps_is_counted_once() -> None:
    part = fleet([want(JOBS, name="a"), want(JOBS[:4], name="b")])
    assert (part.jobs, part.asked) == (6, ((JobResources(), 6),))


def test_a_job_that_another_sweep_has_already_is_counted_once() -> None:
    part = fleet([want(JOBS[:4])], other=seen(JOBS[2:], succeeded=[3], running=[0]))
    assert (part.jobs, part.asked) == (5, ((JobResources(), 5),))


def test_a_job_of_two_sweeps_counts_by_what_asks_for_most() -> None:
    small, big = want(JOBS, name="a"), want(JOBS[:2], name="b", settings=SweepSettings(resources=BIG))
    for desired in ([small, big], [big, small]):
        assert fleet(desired).asked == ((BIG, 2), (JobResources(), 4))


def test_jobs_of_a_sweep_that_is_held_are_none() -> None:
    assert fleet([want(JOBS[:4])], other=seen(JOBS, paused=True)).jobs == 4


def test_jobs_are_counted_by_their_image_too_and_a_strangers_not_at_all() -> None:
    digest = f"sha256:{'a' * 64}"
    inside = replace(RECIPE, image=digest), SweepSettings(image="ghcr.io/lab/train:1")
    desired = [want(JOBS[:4], name="a"), want(JOBS, inside[0], name="b", settings=inside[1])]
    plain = (JobResources(), 4)
    assert fleet(desired).images == {"": (plain,), f"ghcr.io/lab/train@{digest}": ((JobResources(), len(JOBS)),)}
    part = fleet(desired[:1], other=replace(seen(JOBS), foreign=True))
    assert (part.jobs, part.images) == (4, {"": (plain,)}), "their image would become a pod with our credentials"


def test_when_sweeps_expire_that_are_through_is_told_apart() -> None:
    everything = range(len(JOBS))
    others = {
        "busy": seen(JOBS, expires=10.0),
        "done": seen(JOBS, succeeded=everything, expires=30.0),
        "ended": seen(JOBS, succeeded=everything, expires=20.0),
        "cancelled": seen(JOBS, succeeded=everything, expires=40.0, cancelled="enough"),
    }
    for names in ([], ["done"], ["done", "ended", "cancelled"]):
        desired = [want(JOBS, name=name) for name in ["busy", *names]]
        plan = compute_plan(desired, ObservedProject(others))
        (part,) = plan.fleets
        assert (plan.expires(part, 0.0), plan.through(part, 0.0)) == (10.0, 30.0), names


_ROWS = st.sets(st.integers(0, len(JOBS) - 1))


@given(_ROWS, _ROWS, _ROWS, _ROWS, st.booleans())
def test_the_jobs_that_are_left_are_as_many_as_are_counted(
    rows: set[int], succeeded: set[int], failed: set[int], stopped: set[int], recoded: bool
) -> None:
    there = seen(JOBS, succeeded=succeeded, failed=failed - succeeded)
    assert there.applied is not None
    met = {there.applied.table.ids[row]: StopEvidence("loss") for row in stopped - succeeded - failed}
    desired = want([*(JOBS[row] for row in sorted(rows)), *grid(lr=[9], seed=[0])], CODE if recoded else RECIPE)
    (sweep,) = compute_plan([desired], ObservedProject({"digits": replace(there, stopped=met)}, there.succeeded)).sweeps
    left = list(find_remaining_work(sweep).jobs())
    assert len(left) == len(set(left)) == sweep.jobs.unfinished
