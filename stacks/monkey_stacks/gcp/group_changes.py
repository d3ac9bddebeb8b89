"""What is done to a fleet around Pulumi's part: which machines end before, and which come after."""

from __future__ import annotations

import time
from collections.abc import Sequence

from monkey.errors import FleetError
from monkey.fleet.fleet_port import Say
from monkey_stacks.cloud.scaling import Course
from monkey_stacks.engine.engine_outcome import Resource
from monkey_stacks.gcp.api import group, inventory
from monkey_stacks.gcp.api.account import PATIENCE, Account
from monkey_stacks.gcp.api.inventory import TYPES, Thing
from monkey_stacks.gcp.api.naming import Stack
from monkey_stacks.gcp.desired_resources import Wanted

_LOOK = 1.0


def end(account: Account, plan: Course, wanted: Wanted, known: Sequence[Resource], say: Say) -> None:
    """End what is outdated or too much: before Pulumi takes away what these machines are in. Raises FleetError."""
    group.retire(account, wanted.stack, plan.ending)
    for member in plan.ending:
        say(f"{member.id}: taken away, {plan.why(member)}")
    if plan.ending and _moves(wanted, known):
        _until_gone(account, wanted.stack, {each.id for each in plan.ending})


def _moves(wanted: Wanted, known: Sequence[Resource]) -> bool:
    """Say whether the network is another one from now on: Google takes none away that somebody is in."""
    own = any(each.type == TYPES["subnetwork"] for each in known)
    return own == bool(wanted.network)


def _until_gone(account: Account, stack: Stack, ids: set[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while (there := group.look(account, stack)) is not None and there.counted & ids:
        if time.monotonic() > deadline:
            raise FleetError(f"{', '.join(sorted(there.counted & ids))} does not go", hint="try again in a while")
        time.sleep(_LOOK)


def clear(account: Account, stack: Stack, known: Sequence[Resource], say: Say) -> None:
    """Take away what is astray. Raises FleetError."""
    inventory.remove(account, astray(account, stack, known), say)


def astray(account: Account, stack: Stack, known: Sequence[Resource]) -> list[Thing]:
    """Return all that nobody wrote down and no group counts. Raises FleetError."""
    things = inventory.look(account, stack)
    there = group.look(account, stack)
    return [*inventory.strays(account, stack, things, known), *inventory.lone(things, there)]


def lone(account: Account, stack: Stack, say: Say) -> None:
    """Take away the machines that no group counts: what they are in could not go. Raises FleetError."""
    things = inventory.look(account, stack)
    inventory.remove(account, inventory.lone(things, group.look(account, stack)), say)


def size(account: Account, stack: Stack, plan: Course, until: str, say: Say) -> None:
    """Give the group machines, where it is sure when they end. Raises FleetError."""
    there = group.look(account, stack)
    if there is None or not plan.after:
        return
    if not until:
        raise FleetError(
            f"nobody says until when machines of provider {stack.fleet!r} are rented",
            hint="write expires: 12h into the spec",
        )
    if plan.after != there.desired:
        group.size(account, stack, plan.after)
        say(f"{plan.after} machine{'s' * (plan.after != 1)} asked for")
