"""Machines of AWS by the real Pulumi and the real CLI: from a plan to nothing left, with moto for AWS."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
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


def ends(aws: Account, name: str = "") -> float:
    """Return when the group of that name is emptied, or the only one."""
    asked = {"AutoScalingGroupName": name} if name else {}
    [found] = aws.client("autoscaling").describe_scheduled_actions(**asked)["ScheduledUpdateGroupActions"]
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


def groups(aws: Account) -> dict[str, dict[str, Any]]:
    """Return the groups by the fleets of their tags, as a second client sees them."""
    found = aws.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    return {next(tag["Value"] for tag in each["Tags"] if tag["Key"] == "monkey:fleet"): each for each in found}


def read_disk_size(aws: Account, group: Mapping[str, Any]) -> int:
    """Return the GiB of the disk of a group's machines, as a second client sees them."""
    template = group["MixedInstancesPolicy"]["LaunchTemplate"]["LaunchTemplateSpecification"]["LaunchTemplateId"]
    asked = aws.client("ec2").describe_launch_template_versions(LaunchTemplateId=template, Versions=["$Latest"])
    [disk] = asked["LaunchTemplateVersions"][0]["LaunchTemplateData"]["BlockDeviceMappings"]
    size: int = disk["Ebs"]["VolumeSize"]
    return size


def test_specs_choose_other_machines_of_their_provider(shop: Shop, aws: Account) -> None:
    rent(shop, aws.image())
    run(shop, "init", ".", "--provider", "aws", "--create-bucket")
    # As written by one and by another: the same machines, and so one fleet.
    chosen = {
        "one": "{name: cloud, instance_type: m5.xlarge, disk: 200GiB}",
        "other": "[{name: cloud, disk: 204800MiB, instance_type: [m5.xlarge]}]",
    }
    for name, provider in chosen.items():
        shop.spec(f"provider: {provider}\nexpires: 50m\nenv: {{OF: {name}}}\n", jobs=4, name=name)
    fleet = "cloud..m5.xlarge..disk-200GiB"
    assert f"+ {fleet}/group: machines m5.xlarge in eu-central-1, at most 4" in run(shop, "plan")
    run(shop, "apply", "--detach", "--yes")
    there = groups(aws)
    assert there.keys() == {"cloud", fleet}
    kinds = {name: {each["InstanceType"] for each in of["Instances"]} for name, of in there.items()}
    assert kinds == {"cloud": {"m5.large"}, fleet: {"m5.xlarge"}}, "each sweep has the machines that its spec asks for"
    assert len(aws.there("monkey:fleet", fleet)) == PARTS + 2 and len(there[fleet]["Instances"]) == 2
    assert read_disk_size(aws, there[fleet]) == 200
    assert run(shop, "plan", "--detailed-exitcode").startswith("No changes")
    run(shop, "audit")
    assert {"name": fleet, "type": "aws"}.items() <= shop.json("list", "providers")[1].items()
    listed = {row["fleet"]: row for row in shop.json("list", "instances") if row["machine"] == "group"}
    assert "4 × m5.xlarge" in listed[fleet]["about"] and "4 × m5.large" in listed["cloud"]["about"]
    before = ends(aws, there[fleet]["AutoScalingGroupName"])
    run(shop, "extend", "one", "6h", "--yes")
    assert abs(ends(aws, there[fleet]["AutoScalingGroupName"]) - before - 6 * 3600) <= 60

    # Nothing is forgotten when no spec asks for it any more.
    shop.spec("provider: cloud\nexpires: 50m\nenv: {OF: one}\n", jobs=4, name="one")
    (shop.root / "specs" / "other.yaml").unlink()
    run(shop, "cancel", "other")
    said = run(shop, "plan")
    run(shop, "apply", "--detach", "--yes")
    assert f"{fleet}: no spec asks for its 2 machines any more; they end when they have no work" in said
    assert fleet in {row["fleet"] for row in shop.json("list", "instances")} and len(groups(aws)) == 2
    run(shop, "audit")
    gone = {"AutoScalingGroupName": there[fleet]["AutoScalingGroupName"], "DesiredCapacity": 0}
    aws.client("autoscaling").set_desired_capacity(**gone)  # as machines do that have no work
    assert f"- {fleet}/group: no spec asks for these machines any more" in run(shop, "plan")
    run(shop, "apply", "--detach", "--yes")
    assert aws.there("monkey:fleet", fleet) == {} and groups(aws).keys() == {"cloud"}
    assert run(shop, "plan", "--detailed-exitcode").startswith("No changes")
    run(shop, "destroy", "--yes")
    assert aws.there("monkey:project", "shop") == {}
