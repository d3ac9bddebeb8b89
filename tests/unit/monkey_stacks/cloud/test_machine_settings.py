"""What a saved plan is bound to of machines: what monkey.yaml says of them, and nothing that changes by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from monkey.spec.project.cloud import CloudSettings
from monkey_stacks.aws.api.catalog import AwsImage
from monkey_stacks.aws.api.naming import AwsStack
from monkey_stacks.aws.desired_resources import AwsFleetPlan
from monkey_stacks.boot import MachineSettings
from monkey_stacks.cloud.machine_settings import hash_configuration
from monkey_stacks.ssh.host_resource import list_bound_inputs, make_host_inputs
from monkey_stacks.ssh.host_state import HostPlan

CLOUD = CloudSettings("eu-central-1", ("g5.xlarge",), disk=10)
TOLD = MachineSettings("aws", "s3://b", "p", "f", bundle="b1", parts=1, signers="s1", group="g")
FLEET = AwsFleetPlan(
    stack=AwsStack("p", "f", "1"),
    region="eu-central-1",
    types=("g5.xlarge",),
    image_name="Debian",
    image=AwsImage("ami-1", "/dev/xvda", "x86_64", 1),
    disk=10,
    max_instances=4,
    spot=False,
    vpc="",
    subnets=(),
    zones=("eu-central-1a",),
    user_data="bundle b1, signers s1",
    role="{}",
    made="m1",
    configured=hash_configuration(CLOUD, TOLD),
)


def test_configuration_leaves_out_the_agent_s_code_and_signers() -> None:
    assert hash_configuration(CLOUD, replace(TOLD, bundle="b2", parts=2, signers="s2")) == FLEET.configured


@pytest.mark.parametrize(
    ("cloud", "told"),
    [
        ({}, {"idle_timeout": 5.0}),
        ({}, {"max_slots": 2}),
        ({}, {"secrets": {"T": "ssm:/t"}}),
        ({"disk": 20}, {}),
        ({}, {"lease": 300.0}),
    ],
)
def test_configuration_has_what_monkey_yaml_says(cloud: dict[str, Any], told: dict[str, Any]) -> None:
    assert hash_configuration(replace(CLOUD, **cloud), replace(TOLD, **told)) != FLEET.configured


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({"image": AwsImage("ami-2", "/dev/xvda", "x86_64", 1)}, False),
        ({"zones": ("eu-central-1a", "eu-central-1b")}, False),
        ({"user_data": "bundle b2"}, False),
        ({"made": "m2"}, False),
        ({"image_name": "Ubuntu"}, True),
        ({"max_instances": 5}, True),
        ({"spot": True}, True),
        ({"role": "{1}"}, True),
        ({"configured": "c2"}, True),
    ],
)
def test_saved_plan_is_bound_to_what_does_not_change_by_itself(change: dict[str, Any], counts: bool) -> None:
    assert (replace(FLEET, **change).bound != FLEET.bound) is counts
    assert "configured" not in FLEET.inputs, "a template's name is made from these"


def test_saved_plan_is_not_bound_to_the_code_of_agents_on_hosts() -> None:
    wanted = HostPlan("/store", "p", "lab")
    one, other = ([make_host_inputs("h1", wanted, agent)] for agent in ("0.1.0 (a)", "0.2.0 (b)"))
    assert one != other and list_bound_inputs(one) == list_bound_inputs(other)
    more = [make_host_inputs("h1", replace(wanted, max_slots=2), "0.1.0 (a)")]
    assert list_bound_inputs(more) != list_bound_inputs(one)
