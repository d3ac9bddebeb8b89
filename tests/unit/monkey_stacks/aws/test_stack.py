"""What a fleet is called on AWS, what its machines are made from, and AWS's errors in our words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from monkey.errors import FleetError
from monkey.spec.project.cloud import CloudSettings
from monkey.spec.project.provider import Provider
from monkey_stacks.aws import desired_resources
from monkey_stacks.aws.api import errors
from monkey_stacks.aws.api.catalog import AwsImage
from monkey_stacks.aws.api.inventory import AwsResource, identify_resource
from monkey_stacks.aws.api.naming import name_stack
from monkey_stacks.aws.api.orphans import find_orphans, make_finder
from monkey_stacks.bundle.bundle import Bundle
from monkey_stacks.cloud import machine_settings
from monkey_stacks.engine.engine_outcome import StateResource

URL = "s3://bucket/team"
CLOUD = CloudSettings("eu-central-1", ("g5.xlarge",))
IMAGE = AwsImage("ami-1", "/dev/xvda", "x86_64", 8 << 30)
VPC, SUBNET = "aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet"


def test_a_stack_is_of_one_place_in_one_bucket() -> None:
    one = name_stack(URL, "digits", "cloud")
    assert one.name == f"monkey-digits-cloud-{one.id}"
    assert one == name_stack(f"{URL}/?region=eu-west-1&endpoint=http://127.0.0.1:9", "digits", "cloud")
    others = [
        name_stack("s3://bucket/team2", "digits", "cloud"),
        name_stack(URL, "digits", "b"),
        name_stack(URL, "other", "cloud"),
    ]
    assert len({one.id, *(other.id for other in others)}) == 4
    long = name_stack(URL, "p" * 63, "f" * 63)
    assert len(long.name) <= 64 and long.name.endswith(long.id)
    with pytest.raises(FleetError, match=r"expected a bucket of S3, found gs://bucket"):
        name_stack("gs://bucket", "digits", "cloud")


def test_a_machine_is_outdated_by_all_but_the_agents_code() -> None:
    def made(cloud: CloudSettings, bundle: str = "b", max_slots: int | None = None, signers: str = "alice") -> str:
        provider = Provider("aws", max_slots, cloud=cloud)
        stack = name_stack(URL, "digits", "cloud")
        code = Bundle(bundle, Path(bundle), (1,) * len(bundle))
        said = machine_settings.make_settings(provider, stack, URL, code, "group", signers)
        return machine_settings.hash_machine_inputs(cloud, IMAGE.id, said)

    one = made(CLOUD)
    assert (
        one == made(CLOUD, "another") == made(replace(CLOUD, types=("p3.2xlarge",), max_instances=9, prices={"x": 1}))
    )
    others = [made(replace(CLOUD, disk=1)), made(replace(CLOUD, spot=True)), made(CLOUD, max_slots=3)]
    others += [made(replace(CLOUD, secrets={"A": "ssm:/a"})), made(replace(CLOUD, orphan_timeout=200))]
    others += [made(CLOUD, signers="alice\nbob")]
    assert len({one, *others}) == 7


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("An error occurred (ExpiredToken) when calling the GetUser operation: x", "credentials have expired"),
        ("operation error STS: GetCallerIdentity, api error InvalidClientTokenId: The security token", "does not know"),
        ("Unable to locate credentials", "no credentials for AWS here"),
        ("creating EC2 VPC: api error UnauthorizedOperation: You are not authorized to perform", "does not permit it"),
        ("User: arn:aws:iam::1:user/x is not authorized to perform: iam:CreateRole", "does not permit it"),
        ("Could not connect to the endpoint URL: https://ec2.eu-nowhere-1.amazonaws.com/", "region cannot be reached"),
        ("We currently do not have sufficient g5.xlarge capacity in the Availability Zone", "no such machines now"),
        ("You have requested more vCPU capacity than your current vCPU limit of 0 allows", "quota"),
        ("api error VpcLimitExceeded: The maximum number of VPCs has been reached.", "quota"),
        ("InvalidAMIID.NotFound: The image id '[ami-1]' does not exist", "no such image"),
        ("ThrottlingException: Rate exceeded", "asked too often"),
    ],
)
def test_errors_are_told_in_our_words(said: str, message: str) -> None:
    found = errors.translate_cloud_error(f"creating thing:\n  error: {said}\n")
    assert found is not None and found.hint
    assert message in found.message and said in found.message


def test_what_nobody_knows_is_left_as_it_is() -> None:
    assert errors.translate_cloud_error("something new") is None


def test_what_was_cut_off_is_found_again_and_what_nobody_knows_is_astray() -> None:
    def tags(part: str) -> dict[str, object]:
        return {"tags": {"monkey:part": part}}

    things = [
        AwsResource("vpc", "vpc-1", "vpc"),
        AwsResource("vpc", "vpc-2", "vpc"),
        AwsResource("subnet", "subnet-1", "subnet-a"),
        AwsResource("subnet", "subnet-2", "subnet-b"),
        AwsResource("subnet", "subnet-3", "subnet-a"),
        AwsResource("association", "rtbassoc-1", "", ("subnet-1", "rtb-1")),
        AwsResource("instance", "i-1", "machine"),
    ]
    state = [
        StateResource(VPC, "vpc", "vpc-1", tags("vpc")),
        StateResource(SUBNET, "subnet-a", "", tags("subnet-a"), {}, True),
    ]
    find = make_finder(things, state)
    # The state has the other; of two that may be it, always the same.
    assert find(VPC, tags("vpc")) == "vpc-2"
    assert find(SUBNET, tags("subnet-a")) == "subnet-1"
    assert find(SUBNET, tags("subnet-c")) == ""
    joined = "aws:ec2/routeTableAssociation:RouteTableAssociation"
    assert find(joined, {"subnetId": "subnet-1", "routeTableId": "rtb-1"}) == "rtbassoc-1"
    assert find(joined, {"subnetId": "subnet-2", "routeTableId": "rtb-1"}) == ""
    assert identify_resource(things, "aws:s3/bucket:Bucket", {}) is None
    assert [each.id for each in find_orphans(things, state)] == ["vpc-2", "subnet-2", "subnet-3", "rtbassoc-1"]


def test_each_zone_has_its_own_addresses() -> None:
    ranges = [desired_resources.compute_subnet_range(f"eu-central-1{letter}") for letter in "abcdef"]
    assert ranges[:2] == ["10.73.0.0/20", "10.73.16.0/20"] and len(set(ranges)) == 6
