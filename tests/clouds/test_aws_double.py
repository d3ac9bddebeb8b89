"""The double of the provider for AWS does what it is asked, and refuses what the real one would refuse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from monkey.errors import FleetError
from tests.clouds import rig
from tests.clouds.account import Account
from tests.clouds.aws import firewall, machines, network, roles, routes, storage
from tests.clouds.bench import Bench
from tests.clouds.sdk import Sdk
from tests.stacks.desk import ops

pytestmark = pytest.mark.slow

EVERYTHING = {
    *("net", "gate", "table", "out", "subnet", "routed", "s3", "shut"),
    *("role", "may", "profile", "template", "machines", "end"),
}


@pytest.fixture
def bench(pulumi: None, aws: Account, tmp_path: Path) -> Iterator[Bench]:
    yield Bench(tmp_path)


def test_life_of_a_group(bench: Bench, aws: Account) -> None:
    image = aws.image()
    foreseen = bench.run(lambda engine: engine.preview(rig.program(image)))
    assert set(ops(foreseen).values()) == {"create"}
    assert not aws.wire.changes, "a preview made something"
    done = bench.up(rig.program(image))
    done.check()
    assert ops(done).keys() == EVERYTHING
    assert len(aws.there("monkey:fleet", "rig")) == 11

    # Machines come and go: that is no change, and what somebody else changed is one.
    groups = aws.client("autoscaling")
    groups.set_desired_capacity(AutoScalingGroupName="monkey-rig", DesiredCapacity=2)
    before = len(aws.wire.changes)
    assert set(ops(bench.up(rig.program(image), refresh=True)).values()) == {"same"}
    assert len(aws.wire.changes) == before
    groups.update_auto_scaling_group(AutoScalingGroupName="monkey-rig", MaxSize=9)
    changed = bench.up(rig.program(image, kind="m5.xlarge"), refresh=True)
    assert {name: op for name, op in ops(changed).items() if op != "same"} == {
        "template": "update instanceType",
        "machines": "update maxSize mixedInstancesPolicy",
    }
    [group] = groups.describe_auto_scaling_groups()["AutoScalingGroups"]
    assert (group["MaxSize"], group["DesiredCapacity"]) == (4, 2)
    assert group["MixedInstancesPolicy"]["LaunchTemplate"]["LaunchTemplateSpecification"]["Version"] == "2"

    foreseen = bench.run(lambda engine: engine.preview(rig.program(image, block="10.1.0.0/16")))
    assert ops(foreseen)["net"] == "replace cidrBlock"
    bench.run(lambda engine: engine.destroy()).check()
    assert not aws.there("monkey:fleet", "rig")


def test_refuses_what_the_sdk_does_not_define(bench: Bench, aws: Account) -> None:
    more = {"metadata_options": {"http_tokenz": "required"}, "block_device_mappings": [{"ebs": {"encrypted": True}}]}
    with pytest.raises(FleetError) as raised:
        bench.up(rig.program("ami-12345678", more=more))
    assert "metadataOptions.http_tokenz" in str(raised.value) + str(raised.value.hint)


def test_fails_as_it_is_told_to(bench: Bench, aws: Account) -> None:
    image = aws.image()
    aws.wire.refuse("AddRoleToInstanceProfile", "AccessDenied", "not authorized to perform: iam:PassRole", 403)
    [failure] = bench.up(rig.program(image)).failures
    assert failure.name == "profile"
    assert "StatusCode: 403" in failure.message
    # The profile is there, without its role: Pulumi knows of it.
    assert "profile" in {each.name for each in bench.run(lambda engine: engine.resources())}
    aws.wire.clear()
    # As with the real one: it believes that it had made all of it, and finds by looking that it had not.
    bench.up(rig.program(image), refresh=True).check()
    [profile] = aws.client("iam").list_instance_profiles()["InstanceProfiles"]
    assert [each["RoleName"] for each in profile["Roles"]] == ["monkey-rig"]

    counted = aws.wired("autoscaling")
    with pytest.raises(ClientError, match="above max value 4"):
        counted.set_desired_capacity(AutoScalingGroupName="monkey-rig", DesiredCapacity=5)


def test_looks_who_asks_before_anything_else(bench: Bench, aws: Account) -> None:
    aws.wire.refuse("GetCallerIdentity", "ExpiredToken", "The security token included in the request is expired", 403)
    with pytest.raises(FleetError) as raised:
        bench.up(rig.program("ami-12345678"))
    assert "credentials have expired" in f"{raised.value} {raised.value.hint}"
    assert not aws.wire.changes


@pytest.mark.filterwarnings("ignore:s3.BucketV2 has been deprecated:DeprecationWarning")
def test_what_it_knows_of_arguments_are_arguments_of_the_sdk() -> None:
    sdk = Sdk("pulumi_aws")
    for kind in [kind for module in (network, routes, firewall, roles, machines, storage) for kind in module.KINDS]:
        assert kind.forces | kind.chosen | kind.only_here | kind.documents <= sdk.names(kind.token), kind.token
        assert ("region" in kind.forces) == ("region" in sdk.names(kind.token)), kind.token
