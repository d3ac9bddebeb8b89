"""What is asked of AWS that changes something, over a fleet's life, in a region of three zones.

`test_aws.py` holds that there is no more than this.
"""

from __future__ import annotations

from collections import Counter

#: As a fleet with work for two machines is made from nothing.
MAKING = Counter(
    {
        "CreateVpc": 1,
        "ModifyVpcAttribute": 2,
        "CreateInternetGateway": 1,
        "AttachInternetGateway": 1,
        "CreateSubnet": 3,
        "ModifySubnetAttribute": 3,
        "CreateRouteTable": 1,
        "CreateRoute": 1,
        "AssociateRouteTable": 3,
        "CreateVpcEndpoint": 1,
        "CreateSecurityGroup": 1,
        "RevokeSecurityGroupEgress": 1,
        "AuthorizeSecurityGroupEgress": 1,
        "CreateRole": 1,
        "PutRolePolicy": 1,
        "CreateInstanceProfile": 1,
        "AddRoleToInstanceProfile": 1,
        "CreateLaunchTemplate": 1,
        "CreateAutoScalingGroup": 1,
        "SuspendProcesses": 1,
        "PutScheduledUpdateGroupAction": 1,
        "SetDesiredCapacity": 1,
    }
)
#: As its two machines become one of another type.
CHANGING = Counter(
    {
        "TerminateInstanceInAutoScalingGroup": 2,
        "CreateLaunchTemplateVersion": 1,
        "ModifyLaunchTemplate": 1,
        "UpdateAutoScalingGroup": 1,
        "PutScheduledUpdateGroupAction": 1,
        "SetDesiredCapacity": 1,
    }
)
#: As it is taken away.
TAKING = Counter(
    {
        "DeleteAutoScalingGroup": 1,
        "DeleteLaunchTemplate": 1,
        "RemoveRoleFromInstanceProfile": 1,
        "DeleteInstanceProfile": 1,
        "DeleteRolePolicy": 1,
        "DeleteRole": 1,
        "DisassociateRouteTable": 3,
        "DeleteVpcEndpoints": 1,
        "DeleteRouteTable": 1,
        "DeleteSubnet": 3,
        "DeleteSecurityGroup": 1,
        "DetachInternetGateway": 1,
        "DeleteInternetGateway": 1,
        "DeleteVpc": 1,
    }
)


def each(calls: Counter[str]) -> list[tuple[str, int]]:
    """Return each call by its action, and the how-manieth of that action it is."""
    return [(action, at) for action, times in calls.items() for at in range(1, times + 1)]
