"""Machines of AWS by the real Pulumi and the real CLI: from a plan to nothing left, with moto for AWS."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monkey.cli.ci.cloud_roles import keep_reading
from tests.acceptance.shop import Shop
from tests.clouds.account import Account
from tests.clouds.calls import CHANGING, MAKING
from tests.clouds.cli import BUCKET, STORE, group, project, rent, run
from tests.clouds.permits import asks, of_others
from tests.iam import judge, table

pytestmark = pytest.mark.slow

#: What has tags of a fleet with a network of its own, in a region of three zones; machines left out.
PARTS = 12


@pytest.fixture
def shop(aws: Account, require: Callable[[str], str], tmp_path: Path) -> Iterator[Shop]:
    """Return a project whose machines are rented at AWS, and whose store is there, too; nobody has made its bucket."""
    require("pulumi")
    require("iam")
    yield project(aws, tmp_path, expires="50m", bucket=False)


class Seen:
    """What there was, for who judges whose it is: ids of things by project, ids of machines by group."""

    def __init__(self, aws: Account) -> None:
        self.aws = aws
        self.tags: dict[str, str] = {}

    def look(self) -> None:
        self.tags |= dict.fromkeys(self.aws.there("monkey:project", "shop"), "shop")
        tagged = [{"Name": "tag:monkey:project", "Values": ["shop"]}]
        tables = self.aws.client("ec2").describe_route_tables(Filters=tagged)["RouteTables"]
        joins = (each["RouteTableAssociationId"] for table in tables for each in table["Associations"])
        self.tags |= dict.fromkeys(joins, "shop")
        found = group(self.aws)
        self.tags |= {each["InstanceId"]: found["AutoScalingGroupName"] for each in found["Instances"]}


def machines(shop: Shop) -> dict[str, dict[str, Any]]:
    """Return what a plan says of machines, by their names."""
    told = json.loads(run(shop, "plan", "--json"))
    return {each["machine"]: each for each in told["fleets"][0]["machines"]}


def changes(aws: Account, since: int = 0) -> Counter[str]:
    """Return what was asked that changes something, the store left out."""
    return Counter(each.action for each in aws.wire.calls[since:] if each.changes and each.service != "s3")


def ends(aws: Account) -> float:
    """Return when the group is emptied."""
    [found] = aws.client("autoscaling").describe_scheduled_actions()["ScheduledUpdateGroupActions"]
    assert (found["MinSize"], found["DesiredCapacity"]) == (0, 0)
    return float(found["StartTime"].timestamp())


def test_from_a_plan_to_nothing_left(shop: Shop, aws: Account) -> None:
    image, seen = aws.image(), Seen(aws)
    rent(shop, image)
    run(shop, "init", ".", "--provider", "aws", "--create-bucket")
    begun = len(aws.wire.calls)
    said = run(shop, "plan")
    assert "+ cloud/group: machines m5.large in eu-central-1, at most 4" in said and "0 → 4" in said
    assert not changes(aws), "a plan rented something"

    run(shop, "apply", "--detach", "--yes")
    there = group(aws)
    assert (there["MinSize"], there["MaxSize"], there["DesiredCapacity"], len(there["Instances"])) == (0, 4, 4, 4)
    assert len(aws.there("monkey:project", "shop")) == PARTS + 4
    assert changes(aws) == MAKING
    order = [each for each in aws.wire.changes if each in ("PutScheduledUpdateGroupAction", "SetDesiredCapacity")]
    assert order == ["PutScheduledUpdateGroupAction", "SetDesiredCapacity"], "machines came before their end was sure"
    assert run(shop, "plan", "--detailed-exitcode").startswith("No changes")
    seen.look()
    more_time(shop, aws)
    seen.look()
    another_type(shop, aws, image)
    seen.look()
    another_network(shop, aws, image)
    policy = run(shop, "init", ".", "--provider", "aws")
    seen.look()
    run(shop, "audit")

    # A provider that monkey.yaml does not name any more is known by its state.
    (shop.root / "monkey.yaml").write_text(f"project: shop\nstore: {STORE}\n")
    assert "no longer names its provider" in run(shop, "audit", code=1)
    run(shop, "destroy", "--yes")
    assert aws.there("monkey:project", "shop") == {}
    assert "There are no machines" in run(shop, "destroy", "--yes")
    permitted(aws, policy, begun, seen.tags)


def more_time(shop: Shop, aws: Account) -> None:
    """Machines that left before the end come again for who is given more time."""
    assert "; `monkey extend sweep 6h` goes on for longer." in run(shop, "status")
    before = ends(aws)
    aws.client("autoscaling").set_desired_capacity(
        AutoScalingGroupName=group(aws)["AutoScalingGroupName"], DesiredCapacity=0
    )
    assert "expires at" in run(shop, "extend", "sweep", "6h", "--yes")
    assert abs(ends(aws) - before - 6 * 3600) <= 60
    there = group(aws)
    assert there["DesiredCapacity"] == 4 and len(there["Instances"]) == 4
    assert "monkey extend" not in run(shop, "status")


def another_type(shop: Shop, aws: Account, image: str) -> None:
    """What is there is replaced, and the plan says why; the group stays the same one."""
    rent(shop, image, "m5.xlarge")
    old, since = {each["InstanceId"] for each in group(aws)["Instances"]}, len(aws.wire.calls)
    told = machines(shop)
    assert told["group"]["why"] == "instance_type m5.large → m5.xlarge" and told["group"]["op"] == "update"
    assert {name for name, each in told.items() if each["op"] in ("replace", "delete")} == old
    whys = {(told[name]["op"], told[name]["why"]) for name in old}
    assert whys == {("replace", "instance_type m5.large → m5.xlarge"), ("delete", "there is work for 3")}
    run(shop, "apply", "--detach", "--yes")
    there = group(aws)
    assert {each["InstanceType"] for each in there["Instances"]} == {"m5.xlarge"} and len(there["Instances"]) == 3
    assert not old & {each["InstanceId"] for each in there["Instances"]}
    assert changes(aws, since).keys() == CHANGING.keys()


def another_network(shop: Shop, aws: Account, image: str) -> None:
    """From one of its own to one that is there: nothing of its own is left, and nothing of theirs is touched."""
    ec2, others = aws.client("ec2"), aws.there().keys() - aws.there("monkey:project", "shop").keys()
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24")["Subnet"]["SubnetId"]
    rent(shop, image, "m5.xlarge", f"    vpc: {vpc}\n    subnets: [{subnet}]\n")
    old, told = {each["InstanceId"] for each in group(aws)["Instances"]}, machines(shop)
    assert {name for name, each in told.items() if each["op"] == "replace"} == {"security", *old}
    assert {told[name]["why"] for name in old} == {"network changes"}
    assert {"vpc", "gateway", "routes", "endpoint"} <= {name for name, each in told.items() if each["op"] == "delete"}
    run(shop, "apply", "--detach", "--yes")
    there = group(aws)
    assert there["VPCZoneIdentifier"] == subnet and there["DesiredCapacity"] == 3
    assert not old & {each["InstanceId"] for each in there["Instances"]}
    kinds = Counter(aws.there("monkey:project", "shop").values())
    assert kinds.pop("Instances") == 3
    assert kinds.keys() == {"SecurityGroups", "LaunchTemplates", "Roles", "InstanceProfiles", "AutoScalingGroups"}
    assert set(kinds.values()) == {1}
    assert aws.there().keys() - aws.there("monkey:project", "shop").keys() == {*others, vpc, subnet}
    assert run(shop, "plan", "--detailed-exitcode").startswith("No changes")


def permitted(aws: Account, policy: str, begun: int, tags: dict[str, str]) -> None:
    """Hold the policy of whoever applies against what was asked: all of that is allowed, and it of nobody else."""
    asked = asks(aws.wire.calls[begun:], tags)
    table(policy, {**dict.fromkeys(asked, True), **dict.fromkeys(of_others(asked), False)})
    once = [each for each in asks(aws.wire.calls[:begun], tags) if each.resource == f"arn:aws:s3:::{BUCKET}"]
    more = {"s3:CreateBucket", "s3:PutBucketPublicAccessBlock", "s3:PutLifecycleConfiguration"}
    assert {each.action for each, may in zip(once, judge(policy, once), strict=True) if not may} == more


def test_a_role_that_only_reads_plans_and_audits(shop: Shop, aws: Account) -> None:
    seen = Seen(aws)
    rent(shop, aws.image())
    policy = json.loads(run(shop, "init", ".", "--provider", "aws", "--create-bucket"))
    run(shop, "apply", "--detach", "--yes")
    seen.look()
    shop.spec("provider: cloud\nexpires: 50m\n", jobs=12)
    begun = len(aws.wire.calls)
    assert run(shop, "plan", "--detailed-exitcode", code=2)
    run(shop, "audit")
    asked = asks(aws.wire.calls[begun:], seen.tags)
    assert {"s3", "ec2", "autoscaling"} <= {each.action.partition(":")[0] for each in asked}
    table(json.dumps(keep_reading(policy)), dict.fromkeys(asked, True))
    run(shop, "destroy", "--yes")
