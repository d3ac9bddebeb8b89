"""Changes of a fleet's group around Pulumi's part: which machines end before, and which come after."""

from __future__ import annotations

import time
from collections.abc import Sequence

from monkey.errors import FleetError
from monkey.fleet.fleet_port import Say
from monkey_stacks.cloud.scaling import ScalingPlan
from monkey_stacks.engine.engine_outcome import StateResource
from monkey_stacks.gcp.api import group, inventory
from monkey_stacks.gcp.api.account import OPERATION_SECONDS, GcpAccount
from monkey_stacks.gcp.api.inventory import TYPES, GcpResource
from monkey_stacks.gcp.api.naming import GcpStack
from monkey_stacks.gcp.desired_resources import GcpFleetPlan

_LOOK = 1.0


def end_machines(
    account: GcpAccount, plan: ScalingPlan, wanted: GcpFleetPlan, known: Sequence[StateResource], say: Say
) -> None:
    """End the machines that are outdated or too many, before Pulumi removes what they use. Raises FleetError."""
    group.retire_machines(account, wanted.stack, plan.ending)
    for member in plan.ending:
        say(f"{member.id}: taken away, {plan.why(member)}")
    if plan.ending and _moves(wanted, known):
        _until_gone(account, wanted.stack, {each.id for each in plan.ending})


def _moves(wanted: GcpFleetPlan, known: Sequence[StateResource]) -> bool:
    """Return whether the fleet changes between a network of its own and another: Google removes none with machines."""
    own = any(each.type == TYPES["subnetwork"] for each in known)
    return own == bool(wanted.network)


def _until_gone(account: GcpAccount, stack: GcpStack, ids: set[str]) -> None:
    deadline = time.monotonic() + OPERATION_SECONDS
    while (there := group.find_group(account, stack)) is not None and there.counted & ids:
        if time.monotonic() > deadline:
            raise FleetError(f"{', '.join(sorted(there.counted & ids))} does not go", hint="try again in a while")
        time.sleep(_LOOK)


def clear_orphans(account: GcpAccount, stack: GcpStack, known: Sequence[StateResource], say: Say) -> None:
    """Remove all orphans. Raises FleetError."""
    inventory.remove_resources(account, find_all_orphans(account, stack, known), say)


def find_all_orphans(account: GcpAccount, stack: GcpStack, known: Sequence[StateResource]) -> list[GcpResource]:
    """Return the resources that no apply recorded, and the machines that no group counts. Raises FleetError."""
    things = inventory.list_stack(account, stack)
    there = group.find_group(account, stack)
    return [*inventory.find_orphans(account, stack, things, known), *inventory.find_loose_machines(things, there)]


def end_loose_machines(account: GcpAccount, stack: GcpStack, say: Say) -> None:
    """End the machines that no group counts: resources that they use could not be removed. Raises FleetError."""
    things = inventory.list_stack(account, stack)
    inventory.remove_resources(account, inventory.find_loose_machines(things, group.find_group(account, stack)), say)


def apply_size(account: GcpAccount, stack: GcpStack, plan: ScalingPlan, until: str, say: Say) -> None:
    """Set the group's size; `until`: when its machines end. Raises FleetError, also where that is not known."""
    there = group.find_group(account, stack)
    if there is None or not plan.after:
        return
    if not until:
        raise FleetError(
            f"nobody says until when machines of provider {stack.fleet!r} are rented",
            hint="write expires: 12h into the spec",
        )
    if plan.after != there.desired:
        group.resize_group(account, stack, plan.after)
        say(f"{plan.after} machine{'s' * (plan.after != 1)} asked for")
