"""What AWS has of a stack, by tags and names, whatever our state says: what was cut off is found again by this.

Nothing that AWS gives an id to can be found by its inputs. So each part is tagged with which part it is, as it is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from monkey.errors import FleetError
from monkey_stacks.aws.api.account import AwsAccount
from monkey_stacks.aws.api.errors import read_error_code, translate_errors
from monkey_stacks.aws.api.naming import FLEET_TAG, PART_TAG, PROJECT, STACK, AwsStack

#: A resource's type as Pulumi has it, by what AWS's own tags call it.
TYPES = {
    "vpc": "aws:ec2/vpc:Vpc",
    "internet-gateway": "aws:ec2/internetGateway:InternetGateway",
    "subnet": "aws:ec2/subnet:Subnet",
    "route-table": "aws:ec2/routeTable:RouteTable",
    "association": "aws:ec2/routeTableAssociation:RouteTableAssociation",
    "security-group": "aws:ec2/securityGroup:SecurityGroup",
    "vpc-endpoint": "aws:ec2/vpcEndpoint:VpcEndpoint",
    "launch-template": "aws:ec2/launchTemplate:LaunchTemplate",
    "role": "aws:iam/role:Role",
    "role-policy": "aws:iam/rolePolicy:RolePolicy",
    "instance-profile": "aws:iam/instanceProfile:InstanceProfile",
    "auto-scaling-group": "aws:autoscaling/group:Group",
}
#: What comes and goes with the group: nothing of Pulumi's.
MACHINE_KINDS = ("instance", "volume")
#: How what has tags and an id of AWS's is asked for: the operation, where the answer has it, and its id.
_ASKED = {
    "vpc": ("describe_vpcs", "Vpcs", "VpcId"),
    "internet-gateway": ("describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
    "subnet": ("describe_subnets", "Subnets", "SubnetId"),
    "route-table": ("describe_route_tables", "RouteTables", "RouteTableId"),
    "security-group": ("describe_security_groups", "SecurityGroups", "GroupId"),
    "vpc-endpoint": ("describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
    "launch-template": ("describe_launch_templates", "LaunchTemplates", "LaunchTemplateId"),
    "instance": ("describe_instances", "Reservations", "InstanceId"),
    "volume": ("describe_volumes", "Volumes", "VolumeId"),
}
#: States of what goes, and is told of for a while; a disk that a machine has goes with it.
_LEAVING = ("shutting-down", "terminated", "deleting", "deleted", "in-use", "creating", "failed", "expired", "rejected")


@dataclass(frozen=True)
class AwsResource:
    """Something of a stack that AWS has."""

    #: One of TYPES, or of MACHINE_KINDS.
    kind: str
    #: As Pulumi knows it.
    id: str
    #: Which part of the stack it is; "" where nobody says.
    part: str = ""
    #: For an association: its subnet and its table.
    joins: tuple[str, str] = ("", "")
    #: Of a machine: "g5.xlarge".
    type: str = ""
    #: What its tags say of its fleet and its stack; "" for what AWS does not tell so.
    of: tuple[str, str] = ("", "")

    @property
    def name(self) -> str:
        """What people read."""
        return f"{self.kind.replace('-', ' ')} {self.id}"


def list_stack(account: AwsAccount, stack: AwsStack) -> tuple[AwsResource, ...]:
    """Return all that there is of a stack, machines among it. Raises FleetError."""
    ec2 = account.client("ec2")
    account.client("iam"), account.client("autoscaling")
    with translate_errors(), ThreadPoolExecutor(len(_ASKED) + 1) as crew:
        named = crew.submit(lambda: list(_named(account, stack)))
        lots = crew.map(lambda kind: list(_tagged(ec2, kind, STACK, stack.id)), _ASKED)
        return (*(each for lot in lots for each in lot), *named.result())


def list_others(account: AwsAccount, stack: AwsStack) -> dict[AwsStack, tuple[AwsResource, ...]]:
    """Return what is tagged as the project's and not as this stack's, by stacks. Raises FleetError.

    Resources without a stack's id are listed, too. A role of which nothing else is left is not found.
    """
    ec2, found = account.client("ec2"), dict[AwsStack, list[AwsResource]]()
    with translate_errors(), ThreadPoolExecutor(len(_ASKED)) as crew:
        for lot in crew.map(lambda kind: list(_tagged(ec2, kind, PROJECT, stack.project)), _ASKED):
            for each in lot:
                if each.of[1] != stack.id and each.kind != "association":
                    found.setdefault(AwsStack(stack.project, *each.of), []).append(each)
    return {other: tuple(dict.fromkeys([*things, *_whole(account, other)])) for other, things in found.items()}


def _whole(account: AwsAccount, stack: AwsStack) -> tuple[AwsResource, ...]:
    """Return all of another stack; nothing where its tags are such that AWS knows no names like that."""
    try:
        return list_stack(account, stack) if stack.id else ()
    except FleetError:
        return ()


def _tagged(ec2: Any, kind: str, tag: str, value: str) -> Iterator[AwsResource]:
    """Yield what there is of a kind, and how subnets are joined to a table: AWS tags no such thing."""
    operation, answer, id_ = _ASKED[kind]
    pages = ec2.get_paginator(operation).paginate(Filters=[{"Name": f"tag:{tag}", "Values": [value]}])
    found = [each for page in pages for each in page[answer]]
    for raw in [each for lot in found for each in lot["Instances"]] if kind == "instance" else found:
        if _state(raw) in _LEAVING:
            continue
        tags = {tag["Key"]: tag["Value"] for tag in raw.get("Tags", ())}
        of = tags.get(FLEET_TAG, ""), tags.get(STACK, "")
        yield AwsResource(kind, raw[id_], tags.get(PART_TAG, ""), type=raw.get("InstanceType", ""), of=of)
        for each in raw.get("Associations", ()):
            state = each.get("AssociationState", {}).get("State", "associated")
            if "SubnetId" in each and state == "associated":
                joins = (each["SubnetId"], raw[id_])
                yield AwsResource("association", each["RouteTableAssociationId"], "", joins)


def _state(raw: Mapping[str, Any]) -> str:
    state = raw.get("State", "")
    return str(state["Name"] if isinstance(state, Mapping) else state).lower()


def _named(account: AwsAccount, stack: AwsStack) -> Iterator[AwsResource]:
    """Yield what is known by its name; something of that name that is not tagged as ours is somebody else's."""
    from botocore.exceptions import ClientError

    iam, name = account.client("iam"), stack.name
    for kind, ask, answer in (
        ("role", iam.get_role, "Role"),
        ("instance-profile", iam.get_instance_profile, "InstanceProfile"),
    ):
        try:
            found = ask(**{f"{answer}Name": name})[answer]
        except ClientError as exc:
            if read_error_code(exc) != "NoSuchEntity":
                raise
            continue
        if {"Key": STACK, "Value": stack.id} in found.get("Tags", ()):
            yield AwsResource(kind, name, kind.removeprefix("instance-"))
            if kind == "role" and name in iam.list_role_policies(RoleName=name)["PolicyNames"]:
                yield AwsResource("role-policy", f"{name}:{name}", "policy")
    groups = account.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[name])
    for group in groups["AutoScalingGroups"]:
        if any(tag["Key"] == STACK and tag["Value"] == stack.id for tag in group["Tags"]):
            yield AwsResource("auto-scaling-group", name, "group")


def identify_resource(things: Sequence[AwsResource], type_: str, inputs: Mapping[str, Any]) -> str | None:
    """Return the id of a resource whose creation was cut off: see `monkey_stacks.engine.engine_outcome.Identify`.

    "" where it is not there: what AWS does not show was never made.
    """
    kind = next((kind for kind, known in TYPES.items() if known == type_), None)
    if kind is None:
        return None
    if kind == "association":
        joins = (inputs.get("subnetId"), inputs.get("routeTableId"))
        return next((each.id for each in things if each.kind == kind and each.joins == joins), "")
    part = _part(inputs.get("tags"))
    # Named ones there are but once.
    fits = [each.id for each in things if each.kind == kind and (part is None or each.part == part)]
    return min(fits, default="")


def _part(tags: Any) -> str | None:
    """Return which part a resource is, by its inputs; the group's tags are a list."""
    if isinstance(tags, Mapping):
        return tags.get(PART_TAG)
    found = [each.get("value") for each in tags or () if each.get("key") == PART_TAG]
    return found[0] if found else None
