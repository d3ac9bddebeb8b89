"""What machines may cost at the worst, in words and sums, and when that is renting."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from monkey.fleet.fleet_records import FleetForecast
from monkey.plan.change import FleetPlan, Plan
from monkey.plan.cost import (
    SECONDS_PER_HOUR,
    FleetCost,
    MachineChange,
    RetainedMachines,
    format_dollars,
    format_total_cost,
)
from monkey.plan.text.lines import summarize_plan


@pytest.mark.parametrize(
    ("cost", "words", "total"),
    [
        (FleetCost(4, "g5", 12, 0, 1.01), "at most 4 × g5 × 12 h × $1.01 = $48.48 until 1970-01-01 00:00 UTC", 48.48),
        (
            FleetCost(1, "g5", 11.9997, 0, 1.01),
            "at most 1 × g5 × 12 h × $1.01 = $12.12 until 1970-01-01 00:00 UTC",
            12.12,
        ),
        (FleetCost(3, "a or b", 0.51, 0, 0.0416), "at most 3 × a or b × 0.6 h × $0.0416 = $0.08 until 1970", 0.08),
        (
            FleetCost(900, "p5", 168, 0, 98.32, True),
            " = $14,865,984.00 until 1970-01-01 00:00 UTC (spot: usually less)",
            None,
        ),
        (FleetCost(2, "g5", 1, 0), "what that costs is unknown: monkey.yaml does not say `price:`", None),
        (FleetCost(2, "g5 or g6", 1, 0, unpriced=("g6",)), "unknown: monkey.yaml does not say `price:` of g6", None),
        (
            FleetCost(2, "g2", 1, 0, 0.13, kept=RetainedMachines(1, 16.55, SECONDS_PER_HOUR)),
            "at most 2 × g2 × 1 h × $0.13 = $0.26 until 1970-01-01 00:00 UTC, and 16.6 h × $0.13 = $2.16 "
            "for 1 machine that keeps its end, 1970-01-01 01:00 UTC: $2.42",
            2.42,
        ),
        (
            FleetCost(2, "g2", 1, 0, kept=RetainedMachines(2, 3, SECONDS_PER_HOUR)),
            "until 1970-01-01 00:00 UTC, besides 2 machines that keep their end, 1970-01-01 01:00 UTC; what that costs",
            None,
        ),
        (FleetCost(2, "g5", -3, 0, 1), "2 × g5 × 0 h × $1.00 = $0.00", 0.0),
    ],
)
def test_a_cost_is_said_so_that_it_can_be_checked(cost: FleetCost, words: str, total: float | None) -> None:
    assert words in cost.words()
    assert total is None or cost.total == total
    assert cost.to_json()["total"] == cost.total and json.dumps(cost.to_json())


def test_costs_add_up_and_one_that_nobody_knows_is_not_left_out() -> None:
    known, unknown = FleetCost(1, "g5", 1, 0, 1.005), FleetCost(1, "g6", 1, 0)
    assert (
        format_total_cost([known, known]) == "at most $2.02"
        and format_total_cost([known, unknown]) == "a price that is unknown"
    )
    assert not known.exceeds and replace(known, limit=1).exceeds and not replace(known, limit=1.01).exceeds
    assert replace(unknown, limit=1000).exceeds, "what nobody knows may be above"
    assert format_dollars(1.5) == "$1.50"


COST = FleetCost(1, "g5", 1, 0, 1)
MACHINE, PART = MachineChange("replace", "i-1"), MachineChange("replace", "template", part=True)


@pytest.mark.parametrize(
    ("cost", "sizes", "changes", "rents"),
    [
        (COST, (2, 2), (), False),
        (COST, (1, 2), (), True),
        (COST, (2, 2), (MACHINE,), True),
        (COST, (2, 2), (replace(MACHINE, trouble="no right"), PART), False),
        (replace(COST, rented=-SECONDS_PER_HOUR), (2, 2), (), True),
        (replace(COST, rented=SECONDS_PER_HOUR), (2, 2), (), False),
        (replace(COST, dearer=True), (2, 2), (), True),
        (replace(COST, dearer=True), (0, 0), (PART,), False),
        (None, (0, 2), (MACHINE,), False),
    ],
)
def test_renting_is_more_machines_more_time_or_dearer_ones(
    cost: FleetCost | None, sizes: tuple[int, int], changes: tuple[MachineChange, ...], rents: bool
) -> None:
    plan = Plan((), (FleetPlan("cloud", 2, 0, "aws", *sizes, machines=(*changes, PART), cost=cost),))
    assert FleetForecast(*sizes, changes, cost=cost).rents is rents
    assert ("machines are rented for at most $1.00" in summarize_plan(plan)) is rents is bool(plan.rented)
