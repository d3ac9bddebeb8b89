"""What of a plan needs a person's consent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monkey.cli.review.harm import find_harm
from monkey.plan.change import FleetPlan, Plan
from monkey.plan.cost import FleetCost, MachineChange
from monkey.plan.gone_sweeps import GoneSweep
from monkey.plan.observed import ObservedSweep
from monkey.spec.job.recipe import SweepSettings
from tests.unit.plan.making import seen, want
from tests.unit.plan.planning import CODE, JOBS, planned

CLOUD = SweepSettings(providers=("cloud",))
COST = FleetCost(2, "g5.xlarge", 10.0, 1e9, price=1.0)


def harm(sweep: ObservedSweep | None, jobs: list[dict[str, object]] = JOBS, **options: object) -> list[str]:
    plan = Plan((planned(want(jobs, **options), sweep),))
    return find_harm(plan).get("digits", [])


def test_what_is_new_or_not_yet_begun_harms_no_one() -> None:
    assert harm(None) == []
    assert harm(seen(JOBS[:4], succeeded=[0, 1], running=[2])) == []
    assert harm(seen(JOBS, succeeded=range(6))) == []
    # Removed before they ran; and a finished one that is no longer wanted keeps its result.
    assert harm(seen(JOBS, succeeded=[5], failed=[4]), JOBS[:4]) == []
    assert harm(seen(JOBS, settings=SweepSettings(max_retries=5))) == []


@pytest.mark.parametrize(
    ("sweep", "jobs", "options", "said"),
    [
        (seen(JOBS, succeeded=[0, 1, 2]), JOBS, {"recipe": CODE}, ["runs 3 finished jobs again"]),
        (
            seen(JOBS, succeeded=[0], running=[1]),
            JOBS,
            {"recipe": CODE},
            ["runs 1 finished job again", "stops 1 running job"],
        ),
        (seen(JOBS, running=[4, 5]), JOBS[:4], {}, ["stops 2 running jobs"]),
        (seen(JOBS[:4], cancelled="too dear"), JOBS, {}, ["opens a cancelled sweep again"]),
    ],
)
def test_what_loses_work_is_named(
    sweep: ObservedSweep, jobs: list[dict[str, object]], options: dict[str, object], said: list[str]
) -> None:
    assert harm(sweep, jobs, **options) == said


def test_a_cancelled_sweep_that_the_plan_leaves_alone_is_no_harm() -> None:
    assert harm(seen(JOBS, cancelled="too dear")) == []
    assert harm(seen(JOBS[:4], cancelled="reached", goal=True), JOBS) == []


def test_a_sweep_whose_spec_is_gone_is_cancelled_only_if_that_was_asked() -> None:
    kept, cancelled = (
        GoneSweep("kept", "specs/kept.yaml", 1, 0, 0),
        GoneSweep("gone", "specs/gone.yaml", 1, 2, 3, pruned=True),
    )
    assert find_harm(Plan((), gone=(kept, cancelled))) == {"gone": ["is cancelled, as its spec is gone"]}


@pytest.mark.parametrize(
    ("fleet", "said"),
    [
        (FleetPlan("cloud", 6, 0, "aws", 0, 2, cost=COST), "rents machines of cloud for "),
        (FleetPlan("cloud", 6, 0, "aws", 2, 2, cost=COST), None),
        (FleetPlan("cloud", 6, 0, "aws", 2, 2, cost=replace(COST, dearer=True)), "rents machines of cloud for "),
        (FleetPlan("cloud", 6, 0, "ssh", 2, 1, machines=(MachineChange("delete", "h1", stops=3),)),
         "takes machines of cloud away from 3 running jobs"),
        (FleetPlan("cloud", 6, 0, "ssh", 0, 2, machines=(MachineChange("create", "h1"),)), None),
    ],
)  # fmt: skip
def test_machines_count_for_all_sweeps_that_use_them(fleet: FleetPlan, said: str | None) -> None:
    here, there = want(JOBS, name="here", settings=CLOUD), want(JOBS, name="there")
    found = find_harm(Plan((planned(here), planned(there)), (fleet,)))
    assert set(found) == ({"here"} if said else set())
    assert not said or found["here"][0].startswith(said)
