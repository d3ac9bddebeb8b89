"""The auto scaling group as it is now: how many machines it has, from what they were made, and when it is emptied.

How many there are is asked of AWS's API alone: what comes and goes by itself is no matter of Pulumi's.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from monkey_stacks.aws.api.account import AwsAccount
from monkey_stacks.aws.api.errors import NO_CAPACITY, translate_cloud_error, translate_errors
from monkey_stacks.aws.api.naming import MADE, AwsStack
from monkey_stacks.cloud.scaling import GroupMember, MachineGroup

#: The scheduled action that empties the group.
EXPIRES = "monkey-expires"
#: States of a machine that is there, or about to be.
_THERE = ("Pending", "Pending:Wait", "Pending:Proceed", "InService")
#: Scaling activities that are looked at.
_NEWEST = 10


def find_group(account: AwsAccount, stack: AwsStack) -> MachineGroup | None:
    """Return the group; None where there is none. Raises FleetError."""
    client = account.client("autoscaling")
    with translate_errors():
        found = client.describe_auto_scaling_groups(AutoScalingGroupNames=[stack.name])["AutoScalingGroups"]
        if not found or found[0].get("Status"):  # it is being deleted
            return None
        actions = client.describe_scheduled_actions(AutoScalingGroupName=stack.name, ScheduledActionNames=[EXPIRES])[
            "ScheduledUpdateGroupActions"
        ]
    raw = found[0]
    states = {each["InstanceId"]: each["LifecycleState"] for each in raw["Instances"]}
    members = _members(account, {id_: state for id_, state in states.items() if state in _THERE})
    at = actions[0]["StartTime"].timestamp() if actions and actions[0].get("StartTime") else None
    return MachineGroup(raw["DesiredCapacity"], members, at, frozenset(states), raw["MinSize"], raw["MaxSize"])


def _members(account: AwsAccount, states: dict[str, str]) -> tuple[GroupMember, ...]:
    if not states:
        return ()
    with translate_errors():
        # By a filter: one that has just gone is then left out, and is no error.
        pages = account.client("ec2").get_paginator("describe_instances")
        asked = pages.paginate(Filters=[{"Name": "instance-id", "Values": sorted(states)}])
        found = [each for page in asked for lot in page["Reservations"] for each in lot["Instances"]]
    return tuple(sorted((_member(each, states) for each in found), key=lambda each: each.id))


def _member(raw: dict[str, Any], states: dict[str, str]) -> GroupMember:
    since, state = raw.get("LaunchTime"), states[raw["InstanceId"]]
    told = "" if state == "InService" else state.partition(":")[0].lower()
    return GroupMember(raw["InstanceId"], raw["InstanceType"], _tag(raw), told, since.timestamp() if since else 0.0)


def _tag(raw: dict[str, Any]) -> str:
    return next((str(tag["Value"]) for tag in raw.get("Tags", ()) if tag["Key"] == MADE), "")


def schedule_emptying(account: AwsAccount, stack: AwsStack, at: float) -> None:
    """Empty the group at a time (seconds since the epoch), even if no agent lives then. Raises FleetError."""
    with translate_errors():
        account.client("autoscaling").put_scheduled_update_group_action(
            AutoScalingGroupName=stack.name,
            ScheduledActionName=EXPIRES,
            StartTime=datetime.fromtimestamp(at, UTC),
            MinSize=0,
            DesiredCapacity=0,
        )


def resize_group(account: AwsAccount, stack: AwsStack, machines: int) -> None:
    """Have the group be of so many machines. Raises FleetError."""
    with translate_errors():
        account.client("autoscaling").set_desired_capacity(
            AutoScalingGroupName=stack.name, DesiredCapacity=machines, HonorCooldown=False
        )


def retire_machine(account: AwsAccount, member: GroupMember) -> None:
    """End a machine, and make the group smaller by it. One that has just gone is none. Raises FleetError."""
    from botocore.exceptions import ClientError

    client = account.client("autoscaling")
    with translate_errors():
        try:
            client.terminate_instance_in_auto_scaling_group(InstanceId=member.id, ShouldDecrementDesiredCapacity=True)
        except ClientError as exc:
            if "not found" not in str(exc):
                raise


def explain_trouble(account: AwsAccount, stack: AwsStack) -> tuple[str, bool]:
    """Return why the group gets no machines, in our words, and whether that may pass by itself; "" where it gets some.

    Raises FleetError.
    """
    with translate_errors():
        found = account.client("autoscaling").describe_scaling_activities(
            AutoScalingGroupName=stack.name, MaxRecords=_NEWEST
        )["Activities"]
    newest = next((each for each in found if each["StatusCode"] in ("Failed", "Successful")), None)
    if newest is None or newest["StatusCode"] == "Successful":
        return "", True
    text = newest.get("StatusMessage") or newest.get("Description") or "it does not say why"
    known = translate_cloud_error(text)
    return (known.message if known else text), bool(NO_CAPACITY[0].search(text))
