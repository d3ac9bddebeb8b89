"""What rented machines may cost at the worst: those that live longer, too, and is it more than agreed."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from monkey.fleet.fleet_records import FleetWork
from monkey.plan.cost import SECONDS_PER_HOUR, FleetCost
from monkey.spec.project.cloud import CloudSettings
from monkey_stacks.aws import requirements as aws_needs
from monkey_stacks.aws.api import inventory as aws
from monkey_stacks.cloud.rent_cost import RentalBounds, forecast_cost, limit_work
from monkey_stacks.cloud.scaling import GroupMember, MachineGroup, ScalingPlan
from monkey_stacks.engine.engine_outcome import StateResource
from monkey_stacks.gcp import requirements as gcp_needs
from monkey_stacks.gcp.api import inventory as gcp

NOW = time.time()
CLOUD = CloudSettings("here", ("large", "small"), max_instances=3, prices={"large": 2.0, "small": 1.0, "huge": 32.0})
STAY, NOTHING = ScalingPlan(2, 2), RentalBounds()


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)


def asked(
    hours: float, group: MachineGroup | None = None, plan: ScalingPlan = STAY, agreed: RentalBounds = NOTHING
) -> FleetCost:
    """Return what work for so many hours may cost."""
    found = forecast_cost(CLOUD, FleetWork(2, expires=NOW + hours * SECONDS_PER_HOUR), group, plan, agreed)
    assert found is not None
    return found


def machine(name: str, hours: float | None) -> GroupMember:
    """Return a machine that its cloud ends in so many hours."""
    return GroupMember(name, "large", "made", ends=None if hours is None else NOW + hours * SECONDS_PER_HOUR)


def test_machines_that_live_longer_than_the_sweeps_are_counted() -> None:
    there = MachineGroup(2, (machine("a", 12), machine("b", 8)), NOW + 12 * SECONDS_PER_HOUR)
    told = asked(1, there)
    assert told.kept is not None and (told.kept.machines, told.kept.until) == (2, NOW + 12 * SECONDS_PER_HOUR)
    assert round(told.kept.hours, 2) == 18 and told.total == 3 * 1 * 2 + 18 * 2
    assert replace(told, limit=10.0).exceeds, "max_cost holds"
    assert (
        asked(12, there).kept is None
        and asked(1, MachineGroup(1, (machine("a", None),), NOW + 12 * SECONDS_PER_HOUR)).kept is None
    )
    over = asked(-1, there).kept
    assert over is not None and round(over.hours, 1) == 20, "what is over began before now"


def test_machines_that_end_before_are_not_counted() -> None:
    old = machine("b", 8)
    told = asked(1, MachineGroup(2, (machine("a", 12), old)), ScalingPlan(2, 2, outdated=(old,)))
    assert told.kept is not None and told.kept.machines == 1


def test_what_is_rented_is_rented_until_the_time_that_was_agreed_to() -> None:
    there = MachineGroup(2, (machine("a", 12),), NOW + 12 * SECONDS_PER_HOUR)
    assert asked(13, there).longer and not asked(11, there).longer
    assert not asked(20, there, agreed=RentalBounds(("large",), until=NOW + 20 * SECONDS_PER_HOUR)).longer, (
        "machines come anew by then"
    )
    assert asked(1, replace(there, desired=0)).rented is None


def test_a_sweep_that_is_through_moves_no_end_of_machines_that_there_are() -> None:
    there = MachineGroup(2, (machine("a", None),), NOW + 12 * SECONDS_PER_HOUR)
    work = FleetWork(2, expires=NOW + 8 * SECONDS_PER_HOUR, through=NOW + 12 * SECONDS_PER_HOUR)
    assert limit_work(work, there, NOTHING).expires == there.expires
    state = RentalBounds(("large",), until=NOW + 11 * SECONDS_PER_HOUR)
    assert limit_work(work, there, state).expires == state.until
    for left, group in (
        (replace(work, through=None), there),  # `expires` of a spec was moved, or a sweep was cancelled
        (replace(work, through=NOW + 10 * SECONDS_PER_HOUR), there),
        (replace(work, expires=NOW + 13 * SECONDS_PER_HOUR), there),
        (work, replace(there, desired=0)),
        (work, None),
    ):
        assert limit_work(left, group, NOTHING) is left


@pytest.mark.parametrize(
    ("agreed", "dearer"),
    [
        (RentalBounds(), False),
        (RentalBounds(("large", "small"), 3), False),
        (RentalBounds(("large",), 3), False),
        (RentalBounds(("large", "small"), 2), True),
        (RentalBounds(("small",), 3), True),
        (RentalBounds(("small",), 6), False),
        (RentalBounds(("large", "huge"), 3), False),
        (RentalBounds(("large", "small")), False),
        (RentalBounds(("small",)), True),
        (RentalBounds(("unknown", "small"), 3), True),
        (RentalBounds(("unknown", "small", "large"), 3), False),
    ],
)
def test_other_types_and_more_machines_are_dearer(agreed: RentalBounds, dearer: bool) -> None:
    assert asked(1, agreed=agreed).dearer is dearer


def test_the_state_says_what_was_agreed_to() -> None:
    policy = {"launchTemplate": {"overrides": [{"instanceType": "large"}, {"instanceType": "small"}]}}
    group = StateResource(
        aws.TYPES["auto-scaling-group"], "group", "g", {"mixedInstancesPolicy": policy, "maxSize": 3.0}
    )
    assert (
        aws_needs.recall_requirements([group]) == RentalBounds(("large", "small"), 3)
        and aws_needs.recall_requirements([]) == RentalBounds()
    )
    said = {"machineType": "large", "scheduling": {"terminationTime": "1970-01-01T01:00:00Z"}}
    template = StateResource(gcp.TYPES["instance-template"], "template", "t", said)
    assert (
        gcp_needs.recall_requirements([template]) == RentalBounds(("large",), until=SECONDS_PER_HOUR)
        and gcp_needs.recall_requirements([]) == RentalBounds()
    )
