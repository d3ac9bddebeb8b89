"""What AWS has of a stack and our state does not know of: how that comes to be found, and how it is taken away.

It comes of an apply that lost its lock while a request was on its way, or of a state that was removed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from monkey.errors import FleetError
from monkey.fleet.fleet_port import Say
from monkey_stacks.aws.api.account import AwsAccount
from monkey_stacks.aws.api.errors import read_error_code, translate_errors
from monkey_stacks.aws.api.inventory import MACHINE_KINDS, TYPES, AwsResource, identify_resource
from monkey_stacks.engine.engine_outcome import Identify, StateResource

#: Seconds that what hangs on something may take to go: machines that end take minutes.
_PATIENCE_SECONDS = 600.0
_PAUSE = 3.0
#: AWS's words for what is there no more.
GONE = ("NotFound", "NoSuchEntity", "Malformed")
#: AWS's words for what something else still needs.
_NEEDED = ("DependencyViolation", "DeleteConflict", "ResourceInUse", "ScalingActivityInProgress", "VolumeInUse")


def select_known(things: Iterable[AwsResource], resources: Iterable[StateResource]) -> set[AwsResource]:
    """Return the things that the state has, by type and id."""
    ids = {(each.type, each.id) for each in resources if each.id}
    return {each for each in things if (TYPES.get(each.kind, ""), each.id) in ids}


def make_finder(things: Iterable[AwsResource], resources: Iterable[StateResource]) -> Identify:
    """Return what finds the resources again whose creation was cut off, among what the state does not have."""
    left = sorted(set(things) - select_known(things, resources), key=lambda each: each.id)
    return lambda type_, inputs: identify_resource(left, type_, inputs)


def find_orphans(things: Sequence[AwsResource], resources: Sequence[StateResource]) -> list[AwsResource]:
    """Return the things, machines left out, that neither the state has nor the next `up` will find again."""
    find = make_finder(things, resources)
    cut = {(each.type, find(each.type, each.inputs)) for each in resources if not each.id}
    ours = select_known(things, resources)
    others = (each for each in things if each not in ours and each.kind not in MACHINE_KINDS)
    return [each for each in others if (TYPES[each.kind], each.id) not in cut]


def remove_resources(
    account: AwsAccount, things: Iterable[AwsResource], say: Say, patience: float = _PATIENCE_SECONDS
) -> None:
    """Take things away, what hangs on others first. Raises FleetError where something will not go."""
    lots: dict[str, list[AwsResource]] = {kind: [] for kind in _REMOVERS}
    for each in things:
        if each.kind in lots:
            lots[each.kind].append(each)
    deadline = time.monotonic() + patience
    for lot in lots.values():
        for each in lot:
            _until_gone(account, each, deadline)
            say(f"{each.name}: taken away, no apply had written it down")


def _until_gone(account: AwsAccount, thing: AwsResource, deadline: float) -> None:
    from botocore.exceptions import ClientError

    while True:
        try:
            with translate_errors():
                _REMOVERS[thing.kind](account, thing)
            return
        except FleetError as exc:
            cause = exc.__cause__
            said = f"{read_error_code(cause)} {cause}" if isinstance(cause, ClientError) else ""
            if any(word in said for word in GONE) or "not found" in said:
                return
            if not any(word in said for word in _NEEDED) or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE)


def _gateway(account: AwsAccount, thing: AwsResource) -> None:
    ec2 = account.client("ec2")
    found = ec2.describe_internet_gateways(InternetGatewayIds=[thing.id])["InternetGateways"]
    for each in found[0].get("Attachments", ()):
        ec2.detach_internet_gateway(InternetGatewayId=thing.id, VpcId=each["VpcId"])
    ec2.delete_internet_gateway(InternetGatewayId=thing.id)


def _profile(account: AwsAccount, thing: AwsResource) -> None:
    iam = account.client("iam")
    for role in iam.get_instance_profile(InstanceProfileName=thing.id)["InstanceProfile"]["Roles"]:
        iam.remove_role_from_instance_profile(InstanceProfileName=thing.id, RoleName=role["RoleName"])
    iam.delete_instance_profile(InstanceProfileName=thing.id)


def _policy(account: AwsAccount, thing: AwsResource) -> None:
    role, _, name = thing.id.partition(":")
    account.client("iam").delete_role_policy(RoleName=role, PolicyName=name)


def _group(account: AwsAccount, thing: AwsResource) -> None:
    account.client("autoscaling").delete_auto_scaling_group(AutoScalingGroupName=thing.id, ForceDelete=True)


def _ec2(call: str, parameter: str, *, listed: bool = False) -> Callable[[AwsAccount, AwsResource], Any]:
    def remove_one(account: AwsAccount, thing: AwsResource) -> None:
        getattr(account.client("ec2"), call)(**{parameter: [thing.id] if listed else thing.id})

    return remove_one


#: How each kind is taken away, in the order in which that can be done.
_REMOVERS: Mapping[str, Callable[[AwsAccount, AwsResource], Any]] = {
    "auto-scaling-group": _group,
    "instance": _ec2("terminate_instances", "InstanceIds", listed=True),
    "launch-template": _ec2("delete_launch_template", "LaunchTemplateId"),
    "instance-profile": _profile,
    "role-policy": _policy,
    "role": lambda account, thing: account.client("iam").delete_role(RoleName=thing.id),
    "vpc-endpoint": _ec2("delete_vpc_endpoints", "VpcEndpointIds", listed=True),
    "association": _ec2("disassociate_route_table", "AssociationId"),
    "subnet": _ec2("delete_subnet", "SubnetId"),
    "route-table": _ec2("delete_route_table", "RouteTableId"),
    "internet-gateway": _gateway,
    "security-group": _ec2("delete_security_group", "GroupId"),
    "vpc": _ec2("delete_vpc", "VpcId"),
    "volume": _ec2("delete_volume", "VolumeId"),
}
