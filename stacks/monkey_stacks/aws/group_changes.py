"""What is done to a fleet around Pulumi's part: which machines end before, and which come after."""

from __future__ import annotations

from collections.abc import Sequence

from monkey.errors import FleetError
from monkey.fleet.fleet_port import Say
from monkey.spec.job.expires import format_utc_time
from monkey_stacks.aws.api import group, inventory, orphans
from monkey_stacks.aws.api.account import Account
from monkey_stacks.aws.api.naming import Stack
from monkey_stacks.cloud.scaling import ROUNDED, Course
from monkey_stacks.engine.engine_outcome import Identify, Resource


def end(account: Account, plan: Course, say: Say) -> None:
    """End what is outdated or too much: before Pulumi takes away what these machines are in. Raises FleetError."""
    for member in plan.ending:
        group.retire(account, member)
        say(f"{member.id}: taken away, {plan.why(member)}")


def clear(account: Account, stack: Stack, known: Sequence[Resource], say: Say) -> Identify:
    """Take away what is astray, and return what finds again what was cut off. Raises FleetError."""
    things = inventory.look(account, stack)
    orphans.remove(account, orphans.strays(things, known), say)
    return orphans.finder(things, known)


def lone(account: Account, stack: Stack, say: Say) -> None:
    """End the machines that no group counts: what they are in could not go. Raises FleetError."""
    things = inventory.look(account, stack)
    there = group.look(account, stack)
    ours = there.counted if there is not None else frozenset[str]()
    orphans.remove(account, [each for each in things if each.kind == "instance" and each.id not in ours], say)


def size(account: Account, stack: Stack, plan: Course, expires: float | None, say: Say) -> None:
    """Have the group emptied in time, and only then give it machines. Raises FleetError."""
    there = group.look(account, stack)
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
        group.expire(account, stack, at)
        say(f"to be emptied at {format_utc_time(at)}")
    if plan.after != there.desired:
        group.size(account, stack, plan.after)
        say(f"{plan.after} machine{'s' * (plan.after != 1)} asked for")
