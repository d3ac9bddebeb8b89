"""IAM policy for users who run `apply`: limited to resources tagged or named for this project."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monkey_stacks.aws import machine_rights
from monkey_stacks.aws.api.naming import PROJECT, make_name_prefix
from monkey_stacks.aws.machine_rights import Statement

#: What of EC2's is made, by which calls. What others are made in is apart: a subnet is not to be made just anywhere.
_MADE = {
    "Vpc": (("vpc",), ("CreateVpc",)),
    "Routes": (("route-table",), ("CreateRouteTable",)),
    "Security": (("security-group",), ("CreateSecurityGroup",)),
    "Others": (
        ("subnet", "internet-gateway", "vpc-endpoint", "launch-template"),
        ("CreateSubnet", "CreateInternetGateway", "CreateVpcEndpoint", "CreateLaunchTemplate"),
    ),
}
#: What comes with a group's machines.
_MACHINES = ("instance", "volume", "network-interface")
#: What is made in a network.
_INSIDE = ("CreateSubnet", "CreateRouteTable", "CreateSecurityGroup", "CreateVpcEndpoint")
#: What is done to what is there. Patterns, where all of that is meant: AWS takes no long policies.
_CHANGES = (
    *("Modify*", "Replace*", "Delete*", "Associate*", "Disassociate*", "Revoke*", "CreateTags", "CreateRoute"),
    *("CreateLaunchTemplateVersion", "AttachInternetGateway", "DetachInternetGateway"),
    *("AuthorizeSecurityGroupEgress", "TerminateInstances"),
)
_ROLE = (
    *("CreateRole", "GetRole", "UpdateRole", "DeleteRole", "TagRole", "UntagRole", "ListRoleTags"),
    *("UpdateAssumeRolePolicy", "PutRolePolicy", "GetRolePolicy", "DeleteRolePolicy", "ListRolePolicies"),
    *("ListAttachedRolePolicies", "ListInstanceProfilesForRole"),
)
_PROFILE = (
    *("CreateInstanceProfile", "GetInstanceProfile", "DeleteInstanceProfile", "TagInstanceProfile"),
    *("UntagInstanceProfile", "AddRoleToInstanceProfile", "RemoveRoleFromInstanceProfile"),
)
_GROUP = (
    *("CreateAutoScalingGroup", "UpdateAutoScalingGroup", "DeleteAutoScalingGroup", "CreateOrUpdateTags"),
    *("DeleteTags", "SuspendProcesses", "ResumeProcesses", "PutScheduledUpdateGroupAction", "DeleteScheduledAction"),
    *("SetDesiredCapacity", "TerminateInstanceInAutoScalingGroup"),
)
#: Roles that AWS has for itself, and makes at their first use.
_LINKED = ("autoscaling.amazonaws.com", "spot.amazonaws.com")


def write_policy(store_url: str, project: str, region: str, partition: str = "aws", vpc: str = "") -> str:
    """Return the policy for a project's fleets in one region; `vpc`: an existing one.

    It fits what AWS takes as a managed policy (6,144 characters, blanks not counted).
    """
    return machine_rights.write_document(
        [
            *machine_rights.write_store_rights(store_url, partition),
            _allow("Look", ["ec2:Describe*", "autoscaling:Describe*"], "*"),
            _allow("PublicImages", ["ssm:GetParameter"], f"arn:{partition}:ssm:{region}::parameter/aws/service/*"),
            *_network(project, f"arn:{partition}:ec2:{region}:*", vpc),
            *_roles(project, f"arn:{partition}:iam::*"),
            *_machines(project, region, partition),
        ]
    )


def _network(project: str, ec2: str, vpc: str) -> list[Statement]:
    """What is made must be tagged in the request that makes it; what is changed must be so already."""
    ours = {"StringEquals": {f"aws:ResourceTag/{PROJECT}": project}}
    asked = {"StringEquals": {f"aws:RequestTag/{PROJECT}": project}}
    calls = [call for _, made in _MADE.values() for call in made]
    tagging = {"StringEquals": {"ec2:CreateAction": [*calls, "RunInstances"], f"aws:RequestTag/{PROJECT}": project}}
    every = [f"{ec2}:{kind}/*" for kind in (*(kind for kinds, _ in _MADE.values() for kind in kinds), *_MACHINES)]
    found = [
        _allow(f"Make{name}", [f"ec2:{call}" for call in made], [f"{ec2}:{kind}/*" for kind in kinds], asked)
        for name, (kinds, made) in _MADE.items()
    ]
    found += [
        _allow("MakeInOurs", [f"ec2:{call}" for call in _INSIDE], [f"{ec2}:vpc/*", f"{ec2}:route-table/*"], ours),
        _allow("TagAsItIsMade", ["ec2:CreateTags"], every, tagging),
        _allow("Change", [f"ec2:{name}" for name in _CHANGES], every, ours),
    ]
    if vpc:
        found.append(_allow("MakeInTheirs", ["ec2:CreateSecurityGroup"], f"{ec2}:vpc/{vpc}"))
    return found


def _roles(project: str, iam: str) -> list[Statement]:
    role, profile = f"{iam}:role/{make_name_prefix(project)}*", f"{iam}:instance-profile/{make_name_prefix(project)}*"
    to_machines = {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}
    linked = {"StringEquals": {"iam:AWSServiceName": list(_LINKED)}}
    return [
        _allow("Role", [f"iam:{name}" for name in _ROLE], role),
        _allow("Profile", [f"iam:{name}" for name in _PROFILE], [profile, role]),
        _allow("GiveRole", ["iam:PassRole"], role, to_machines),
        _allow("RolesOfAWS", ["iam:CreateServiceLinkedRole"], f"{iam}:role/aws-service-role/*", linked),
    ]


def _machines(project: str, region: str, partition: str) -> list[Statement]:
    """The group, and the right to have it run what our templates say: AWS asks for that when a group is made."""
    arn = f"arn:{partition}:autoscaling:{region}:*:autoScalingGroup:*:autoScalingGroupName/{make_name_prefix(project)}*"
    template = {"ArnLike": {"ec2:LaunchTemplate": f"arn:{partition}:ec2:{region}:*:launch-template/*"}}
    return [
        _allow("Group", [f"autoscaling:{name}" for name in _GROUP], arn),
        _allow("RunTemplates", ["ec2:RunInstances"], "*", template),
    ]


def _allow(sid: str, actions: Sequence[str], resource: str | Sequence[str], condition: Any = None) -> Statement:
    said = {"Sid": sid, "Effect": "Allow", "Action": list(actions)}
    said["Resource"] = resource if isinstance(resource, str) else list(resource)
    return {**said, "Condition": condition} if condition else said
