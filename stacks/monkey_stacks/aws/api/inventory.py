"""The inventory of a stack at AWS, by tags and names, whatever our state says: it finds resources of interrupted runs.

A resource to which AWS gives an id cannot be found by its inputs. So each is tagged, as it is made, with the part of
the stack that it is.
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

#: Kind of a resource, in AWS's words, to Pulumi's type.
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
#: Kinds that come and go with the group, and are not Pulumi's.
MACHINE_KINDS = ("instance", "volume")
#: Requests for kinds with tags and an id of AWS's: the operation, the answer's key, and the key of the id.
ASKED = {
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
#: States of resources that end, and are still listed for a while; a disk in use ends with its machine.
_LEAVING = ("shutting-down", "terminated", "deleting", "deleted", "in-use", "creating", "failed", "expired", "rejected")


@dataclass(frozen=True)
class AwsResource:
    """A resource of a stack at AWS."""

    #: One of TYPES, or of MACHINE_KINDS.
    kind: str
    #: Its id for Pulumi.
    id: str
    #: The part of the stack that it is; "" where its tags do not say.
    part: str = ""
    #: For an association: its subnet and its table.
    joins: tuple[str, str] = ("", "")
    #: Type of a machine: "g5.xlarge".
    type: str = ""
    #: Its fleet and its stack, by its tags; "" where these do not say.
    of: tuple[str, str] = ("", "")

    @property
    def name(self) -> str:
        """Return its name for people."""
        return f"{self.kind.replace('-', ' ')} {self.id}"


def list_stack(account: AwsAccount, stack: AwsStack) -> tuple[AwsResource, ...]:
    """Return all resources of a stack, with its machines. Raises FleetError."""
    ec2 = account.client("ec2")
    account.client("iam"), account.client("autoscaling")
    with translate_errors(), ThreadPoolExecutor(len(ASKED) + 1) as crew:
        named = crew.submit(lambda: list(_named(account, stack)))
        lots = crew.map(lambda kind: list(_tagged(ec2, kind, STACK, stack.id)), ASKED)
        return (*(each for lot in lots for each in lot), *named.result())


def list_others(account: AwsAccount, stack: AwsStack) -> dict[AwsStack, tuple[AwsResource, ...]]:
    """Return the resources that are tagged as the project's and not as this stack's, by stack. Raises FleetError.

    Resources without a stack's id are listed, too. A role whose stack has no other resource left is not found.
    """
    ec2, found = account.client("ec2"), dict[AwsStack, list[AwsResource]]()
    with translate_errors(), ThreadPoolExecutor(len(ASKED)) as crew:
        for lot in crew.map(lambda kind: list(_tagged(ec2, kind, PROJECT, stack.project)), ASKED):
            for each in lot:
                if each.of[1] != stack.id and each.kind != "association":
                    found.setdefault(AwsStack(stack.project, *each.of), []).append(each)
    return {other: tuple(dict.fromkeys([*things, *_whole(account, other)])) for other, things in found.items()}


def _whole(account: AwsAccount, stack: AwsStack) -> tuple[AwsResource, ...]:
    """Return all resources of another stack; none where its tags make names that AWS refuses."""
    try:
        return list_stack(account, stack) if stack.id else ()
    except FleetError:
        return ()


def _tagged(ec2: Any, kind: str, tag: str, value: str) -> Iterator[AwsResource]:
    """Yield the resources of a kind with this tag; with a route table, also its associations, which have no tags."""
    operation, answer, id_ = ASKED[kind]
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
    """Yield the resources that are found by name; one of that name without our stack's tag is not ours."""
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
    """Return the id of a resource whose creation was interrupted: see `monkey_stacks.engine.engine_outcome.Identify`.

    Returns "" where it does not exist (AWS lists all that was made), and None for an unknown type.
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
    """Return the part that a resource is, by the tags of its inputs (a list for the group); None without such a tag."""
    if isinstance(tags, Mapping):
        return tags.get(PART_TAG)
    found = [each.get("value") for each in tags or () if each.get("key") == PART_TAG]
    return found[0] if found else None
