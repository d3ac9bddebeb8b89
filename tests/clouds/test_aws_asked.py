"""What AWS is asked besides what Pulumi makes: types, images, zones, the group's machines, and what is astray."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest

from monkey.apply.inspect.fleet_audit import find_foreign_resources
from monkey.errors import FleetError
from monkey_stacks.aws import machine_audit, machine_rights
from monkey_stacks.aws.api import catalog, group, inventory, orphans
from monkey_stacks.aws.api.account import AwsAccount as Product
from monkey_stacks.aws.api.account import open_account
from monkey_stacks.aws.api.naming import MADE, AwsStack, name_stack
from monkey_stacks.cloud.scaling import ROUNDED
from tests.clouds.account import REGION, Account

pytestmark = pytest.mark.slow

URL = "s3://bucket/team"


@pytest.fixture
def product(aws: Account) -> Product:
    """Return who the product is there."""
    return open_account(REGION, URL)


def build(aws: Account, of: AwsStack, image: str) -> str:
    """Make by hand what a fleet is made of, as far as it may go astray; returns the subnet."""

    def tagged(kind: str, part: str) -> dict[str, Any]:
        tags = [{"Key": key, "Value": value} for key, value in of.tags(part).items()]
        return {"TagSpecifications": [{"ResourceType": kind, "Tags": tags}]}

    ec2, iam = aws.client("ec2"), aws.client("iam")
    vpc = ec2.create_vpc(CidrBlock="10.73.0.0/16", **tagged("vpc", "vpc"))["Vpc"]["VpcId"]
    place = {"VpcId": vpc, "CidrBlock": "10.73.0.0/20", "AvailabilityZone": f"{REGION}a"}
    subnet: str = ec2.create_subnet(**place, **tagged("subnet", f"subnet-{REGION}a"))["Subnet"]["SubnetId"]
    table = ec2.create_route_table(VpcId=vpc, **tagged("route-table", "routes"))["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(SubnetId=subnet, RouteTableId=table)
    gate = ec2.create_internet_gateway(**tagged("internet-gateway", "gateway"))["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gate, VpcId=vpc)
    service = {"ServiceName": f"com.amazonaws.{REGION}.s3", "VpcEndpointType": "Gateway", "RouteTableIds": [table]}
    ec2.create_vpc_endpoint(VpcId=vpc, **service, **tagged("vpc-endpoint", "endpoint"))
    ec2.create_security_group(GroupName=of.name, Description="x", VpcId=vpc, **tagged("security-group", "security"))
    said = {"ImageId": image, "InstanceType": "m5.large", "TagSpecifications": [_machine(of)]}
    ec2.create_launch_template(LaunchTemplateName=of.name, LaunchTemplateData=said, **tagged("launch-template", "t"))
    tags = [{"Key": key, "Value": value} for key, value in of.tags("role").items()]
    iam.create_role(RoleName=of.name, AssumeRolePolicyDocument="{}", Tags=tags)
    iam.put_role_policy(
        RoleName=of.name,
        PolicyName=of.name,
        PolicyDocument=machine_rights.write_machine_rights(URL, of, REGION, "aws", {}),
    )
    iam.create_instance_profile(InstanceProfileName=of.name, Tags=tags)
    iam.add_role_to_instance_profile(InstanceProfileName=of.name, RoleName=of.name)
    return subnet


def _machine(of: AwsStack) -> dict[str, Any]:
    tags = {**of.tags("machine"), MADE: "now"}
    return {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}


def make_group(aws: Account, of: AwsStack, subnet: str, desired: int) -> None:
    spec = {"LaunchTemplateSpecification": {"LaunchTemplateName": of.name, "Version": "$Latest"}}
    whole = {"ResourceId": of.name, "ResourceType": "auto-scaling-group", "PropagateAtLaunch": False}
    aws.client("autoscaling").create_auto_scaling_group(
        AutoScalingGroupName=of.name,
        MinSize=0,
        MaxSize=4,
        DesiredCapacity=desired,
        VPCZoneIdentifier=subnet,
        MixedInstancesPolicy={"LaunchTemplate": {**spec, "Overrides": [{"InstanceType": "m5.large"}]}},
        Tags=[{"Key": key, "Value": value, **whole} for key, value in of.tags("group").items()],
    )


def test_what_is_astray_is_found_and_taken_away_and_nobody_elses(aws: Account, product: Product) -> None:
    ours, theirs = name_stack(URL, "digits", "cloud"), name_stack("s3://other/team", "digits", "cloud")
    image = aws.image()
    for each in (ours, theirs):
        make_group(aws, each, build(aws, each, image), 1)
    found = inventory.list_stack(product, ours)
    kinds = [*inventory.TYPES, "instance"]
    assert sorted(each.kind for each in found) == sorted(kinds)
    held_for_others(aws, product, ours, theirs)
    said: list[str] = []
    orphans.remove_resources(product, orphans.find_orphans(found, []), said.append)
    assert len(said) == len(inventory.TYPES) and inventory.list_stack(product, ours) == ()
    assert aws.there("monkey:stack", ours.id) == {}
    assert {each.kind for each in inventory.list_stack(product, theirs)} == set(kinds)


def held_for_others(aws: Account, product: Product, ours: AwsStack, theirs: AwsStack) -> None:
    """What is the project's is told of, whatever stack has it; somebody else's things are not."""
    lone = [{"Key": "monkey:project", "Value": "digits"}]
    ec2 = aws.client("ec2")
    [vpc, _] = [ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"] for _ in range(2)]
    ec2.create_tags(Resources=[vpc], Tags=lone)
    held = machine_audit.find_tagged_resources(product, ours, {"m5.large": 0.1}, partial(name_stack, URL, "digits"))
    assert {each.id for each in held if each.of is None} == {each.id for each in inventory.list_stack(product, ours)}
    alien = {each.id for each in held if each.of is not None and each.of.stack == theirs.id}
    assert alien == {each.id for each in inventory.list_stack(product, theirs)}
    assert [each.id for each in held if each.of is not None and not each.of.stack] == [vpc]
    found = find_foreign_resources([("cloud", each) for each in held])
    [(_, told)] = [each for each in found if each[1].machine == f"stack {theirs.id}"]
    assert "for $0.10 an hour" in told.text and "of another store" in told.text
    assert f"--region {REGION} --tag-filters Key=monkey:stack,Values={theirs.id}" in told.hint
    # Seen by a fleet beside it, that nobody names any more.
    beside = machine_audit.find_tagged_resources(
        product, name_stack(URL, "digits", "beside"), {}, partial(name_stack, URL, "digits")
    )
    texts = {each.of.text for each in beside if each.of is not None and each.of.stack == ours.id}
    assert texts == {"of this store, though it knows of no such provider any more"}


def test_a_groups_machines_end_and_it_is_emptied_in_time(aws: Account, product: Product) -> None:
    ours = name_stack(URL, "digits", "cloud")
    assert group.find_group(product, ours) is None
    make_group(aws, ours, build(aws, ours, aws.image()), 0)
    at = time.time() + 3600
    group.schedule_emptying(product, ours, at)
    group.resize_group(product, ours, 2)
    there = group.find_group(product, ours)
    assert there is not None and there.expires == pytest.approx(at, abs=ROUNDED)
    assert [(each.type, each.made) for each in there.members] == [("m5.large", "now")] * 2
    assert not there.outdated(("m5.large",), "now") and len(there.outdated(("m5.large",), "then")) == 2

    group.retire_machine(product, there.members[0])
    group.retire_machine(product, there.members[0])  # which is gone
    left = group.find_group(product, ours)
    assert left is not None and (left.desired, left.members) == (1, there.members[1:])
    with pytest.raises(FleetError, match="above max value 4"):
        group.resize_group(product, ours, 5)


def test_what_monkey_yaml_asks_for_must_be_there(aws: Account, product: Product) -> None:
    [large] = catalog.read_machine_types(product, ["g5.12xlarge"])
    assert (large.cpus, large.memory, large.gpus, large.arch) == (48, 192 << 30, 4, "x86_64")
    asked = len(aws.wire.calls)
    assert catalog.read_machine_types(product, ["g5.12xlarge"]) == (large,) and len(aws.wire.calls) == asked
    with pytest.raises(FleetError, match="no such type of machines in this region"):
        catalog.read_machine_types(product, ["zz9.huge"])
    with pytest.raises(FleetError, match=r"one architecture, found m5.large is x86_64, m6g.large is arm64"):
        catalog.read_machine_types(product, ["m5.large", "m6g.large"])
    assert catalog.find_zones(product, ["m5.large"]) == (f"{REGION}a", f"{REGION}b", f"{REGION}c")

    image = aws.image()
    found = catalog.find_image(product, image, "x86_64")
    assert (found.id, found.arch) == (image, "x86_64") and found.device.startswith("/dev/")
    with pytest.raises(FleetError, match=f"there is no image ami-0000 in {REGION}"):
        catalog.find_image(product, "ami-0000", "x86_64")
    with pytest.raises(FleetError, match=f"expected an image for arm64, found {image}, which is for x86_64"):
        catalog.find_image(product, image, "arm64")
    # By a parameter: looked up once, and gone on with as long as it is there.
    ssm = aws.client("ssm")
    ssm.put_parameter(Name="/team/image", Value=image, Type="String")
    assert catalog.find_image(product, "resolve:ssm:/team/image", "x86_64").id == image
    ssm.put_parameter(Name="/team/image", Value="ami-0000", Type="String", Overwrite=True)
    assert catalog.find_image(product, "resolve:ssm:/team/image", "x86_64", kept=image).id == image
    with pytest.raises(FleetError, match="there is no image resolve:ssm:/team/image"):
        catalog.find_image(product, "resolve:ssm:/team/image", "x86_64", kept="ami-0001")
    with pytest.raises(FleetError, match="no such image in this region"):
        catalog.find_image(product, "resolve:ssm:/team/none", "x86_64")
    with pytest.raises(FleetError, match="no such network in this region"):
        catalog.check_network(product, "vpc-0", ["subnet-0"])


def test_who_may_not_is_told_so(aws: Account, product: Product) -> None:
    aws.wire.refuse("DescribeImages", "UnauthorizedOperation", "You are not authorized to perform this operation.", 403)
    with pytest.raises(FleetError, match=r"AWS does not permit it: UnauthorizedOperation.*DescribeImages") as raised:
        catalog.find_image(product, "ami-0000", "x86_64")
    assert "monkey init --provider aws" in (raised.value.hint or "")
