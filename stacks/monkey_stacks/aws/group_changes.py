"""What is done to a fleet around Pulumi's part: which machines end before, and which come after."""

from __future__ import annotations

from collections.abc import Sequence

from monkey.errors import FleetError
from monkey.fleet.fleet_port import Say
from monkey.spec.job.expires import format_utc_time
from monkey_stacks.aws.api import group, inventory, orphans
from monkey_stacks.aws.api.account import AwsAccount
from monkey_stacks.aws.api.naming import AwsStack
from monkey_stacks.cloud.scaling import ROUNDED, ScalingPlan
from monkey_stacks.engine.engine_outcome import Identify, StateResource


def end_machines(account: AwsAccount, plan: ScalingPlan, say: Say) -> None:
    """End what is outdated or too much: before Pulumi takes away what these machines are in. Raises FleetError."""
    for member in plan.ending:
        group.retire_machine(account, member)
        say(f"{member.id}: taken away, {plan.why(member)}")


def clear_orphans(account: AwsAccount, stack: AwsStack, known: Sequence[StateResource], say: Say) -> Identify:
    """Take away what is wrong, and return what finds again what was cut off. Raises FleetError."""
    things = inventory.list_stack(account, stack)
    orphans.remove_resources(account, orphans.find_orphans(things, known), say)
    return orphans.make_finder(things, known)


def end_loose_machines(account: AwsAccount, stack: AwsStack, say: Say) -> None:
    """End the machines that no group counts: what they are in could not go. Raises FleetError."""
    things = inventory.list_stack(account, stack)
    there = group.find_group(account, stack)
    ours = there.counted if there is not None else frozenset[str]()
    orphans.remove_resources(account, [each for each in things if each.kind == "instance" and each.id not in ours], say)


def apply_size(account: AwsAccount, stack: AwsStack, plan: ScalingPlan, expires: float | None, say: Say) -> None:
    """Have the group emptied in time, and only then give it machines. Raises FleetError."""
    there = group.find_group(account, stack)
    if there is None or not plan.after:
        return
    at = expires if expires is not None else there.expires
    if at is None:
        raise FleetError(
            f"nobody says until when machines of provider {stack.fleet!r} are rented",
            hint="write expires: 12h into the spec",
        )
    grows = plan.after > there.desired
    # Said again before machines come, whatever AWS tells: it may tell of a group that had the same name before.
    if grows or there.expires is None or abs(there.expires - at) > ROUNDED:
        group.schedule_emptying(account, stack, at)
        say(f"to be emptied at {format_utc_time(at)}")
    if plan.after != there.desired:
        group.resize_group(account, stack, plan.after)
        say(f"{plan.after} machine{'s' * (plan.after != 1)} asked for")
