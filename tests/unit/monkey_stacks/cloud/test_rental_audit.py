"""What an audit says of rented machines, and in which order and how shortly a plan does."""

from __future__ import annotations

import pytest

from monkey_stacks.aws.api.inventory import TYPES, AwsResource
from monkey_stacks.aws.machine_audit import check_bounds
from monkey_stacks.cloud import rental_audit
from monkey_stacks.cloud.cloud_descriptions import join_names
from monkey_stacks.cloud.scaling import MachineGroup
from monkey_stacks.engine.engine_outcome import EngineOutcome, ResourceChange, ResourceOp, StateResource

GROUP = StateResource(TYPES["auto-scaling-group"], "group", "g", {"minSize": 0, "maxSize": 4.0})


def test_what_was_cut_off_is_gone_on_with_or_taken_away() -> None:
    cut = StateResource(TYPES["vpc"], "vpc", "vpc-1", interrupted=True)
    [found] = rental_audit.report_missing([cut], TYPES.values(), set())
    assert "destroy" in found.text and "`monkey apply`" in found.hint and "`monkey destroy`" in found.hint


def test_what_is_astray_goes_without_work_too() -> None:
    [found] = rental_audit.report_orphans(["vpc vpc-1"])
    assert "`monkey apply` takes it away as long as there is work" in found.hint and "`monkey destroy`" in found.hint


@pytest.mark.parametrize(
    ("least", "most", "said"),
    [(0, 4, ""), (0, 9, "most machines that it may have are 9"), (1, 4, "fewest"), (None, None, "")],
)
def test_a_group_whose_bounds_somebody_changed_is_told_of(least: int | None, most: int | None, said: str) -> None:
    found = list(check_bounds(MachineGroup(2, least=least, most=most), [GROUP]))
    assert [said in each.text for each in found] == [True] * bool(said)
    assert not list(check_bounds(None, [GROUP])) and not list(check_bounds(MachineGroup(2, least=0, most=9), []))


def test_a_plan_names_changes_in_the_same_order_each_time_and_a_few_of_many_strays() -> None:
    changes = [ResourceChange(ResourceOp.CREATE, "t", name) for name in ("vpc", "subnet-b", "group", "subnet-a")]
    orders = {EngineOutcome(tuple(lot)).changed for lot in (changes, reversed(changes))}
    assert [each.name for each in orders.pop()] == ["group", "subnet-a", "subnet-b", "vpc"] and not orders
    names = [AwsResource("internet-gateway", f"igw-{n}").name for n in range(5)]
    assert join_names(names) == "internet gateway igw-0, internet gateway igw-1, internet gateway igw-2 and 2 others"
    assert join_names(names[:4]).endswith("igw-2 and 1 other") and join_names(names[:3]).endswith("igw-2")
