"""What a plan says of machines that are rented, and of what they are made from: the same for every cloud."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from monkey.plan.change import FleetPlan
from monkey.plan.cost import MachineChange
from monkey.plan.text.lines import format_fleet_plan
from monkey_stacks.aws import descriptions
from monkey_stacks.cloud import cloud_descriptions
from monkey_stacks.cloud.scaling import SHUT, GroupMember
from monkey_stacks.engine.engine_outcome import ResourceChange, ResourceOp

WANTED = cast(
    cloud_descriptions.CloudFleetPlan, SimpleNamespace(types=("m5.large",), max_instances=2, made="now", inputs={})
)
OLD = GroupMember("i-1", "m5.large", "then")


def template(**changes: tuple[Any, Any]) -> MachineChange:
    """Return how a plan tells of AWS's template; changes: properties, before and after."""
    before, after = (tuple(each[at] for each in changes.values()) for at in (0, 1))
    return descriptions.describe_resource_change(
        ResourceChange(ResourceOp.UPDATE, "t", "template", tuple(changes), before, after)
    )


def blocks(size: int) -> list[dict[str, Any]]:
    return [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": size}}]


def outdated(member: GroupMember, *parts: MachineChange) -> str:
    return cloud_descriptions.describe_outdated(member, WANTED, "instance_type", parts).why


def test_parts_are_told_in_users_words_and_machines_with_all_that_replaces_them() -> None:
    part = template(
        blockDeviceMappings=(blocks(50), blocks(80)),
        tagSpecifications=([{"tags": 1}], [{"tags": 2}]),
        imageId=("ami-1", "ami-2"),
        userData=("a", "b"),
        instanceType=("m5.large", "c5.large"),
    )
    replacing = f"disk 50GiB → 80GiB; image ami-1 → ami-2; {cloud_descriptions.TOLD}"
    assert (
        part.why
        == f"disk 50GiB → 80GiB; image ami-1 → ami-2; instance_type m5.large → c5.large; {cloud_descriptions.TOLD}"
    )
    group = MachineChange("update", "group", "spot false → true; max_instances 3 → 2", part=True)
    assert outdated(OLD, part, group) == f"{replacing}; spot false → true"
    other = GroupMember("i-2", "m4.large", "now")
    assert outdated(other, part) == f"instance_type m4.large → m5.large; {replacing}"
    assert outdated(OLD) == "made with earlier settings"
    assert outdated(GroupMember("i-3", "m5.large", "then", SHUT), part) == "it has shut down"


def test_one_too_many_says_of_what() -> None:
    assert cloud_descriptions.describe_surplus(OLD, 2, 2) == MachineChange("delete", "i-1", "max_instances is 2")
    assert cloud_descriptions.describe_surplus(OLD, 1, 2).why == "there is work for 1"


def test_a_part_has_one_line_and_what_is_replaced_says_so() -> None:
    lots = [("update", "group", "a"), ("replace", "template", "b"), ("update", "group", "c")]
    changes = cloud_descriptions.merge_changes(MachineChange(op, name, why, part=True) for op, name, why in lots)
    machines = (*changes, MachineChange("replace", "i-1", "disk 1GiB → 2GiB", stops=1))
    lines = [line.text for line in format_fleet_plan(FleetPlan("cloud", 1, 1, before=1, after=1, machines=machines))]
    assert lines[1:] == [
        "cloud/group: a; c",
        "cloud/template: replaced: b",
        "cloud/i-1: replaced: disk 1GiB → 2GiB; 1 job running there: stopped and queued again",
    ]


@pytest.mark.parametrize(("before", "after", "said"), [(1.0, 2.0, "disk 1GiB → 2GiB"), (1.0, 1.0, "")])
def test_sizes_of_disks(before: float, after: float, said: str) -> None:
    assert cloud_descriptions.describe_disk(before, after) == said
