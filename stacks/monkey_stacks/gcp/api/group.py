"""The managed instance group as it is now: how many machines it has, from what they were made, and when they end.

How many there are is asked of Google's API alone: what comes and goes by itself is no matter of Pulumi's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from monkey_stacks.cloud.scaling import SHUT, GroupMember, MachineGroup
from monkey_stacks.gcp.api.account import GcpAccount
from monkey_stacks.gcp.api.errors import NO_CAPACITY, translate_cloud_error
from monkey_stacks.gcp.api.naming import STACK, GcpStack

#: What a group does with a machine that is leaving it.
_LEAVING = ("DELETING", "ABANDONING")
#: Seconds from now at which Google may be told to delete a machine.
MAX_LIFE_SECONDS = 120 * 86400.0
#: States of a machine that shut down and was not deleted: it does nothing, and its disk is paid for.
_SHUT = ("STOPPING", "STOPPED", "SUSPENDING", "SUSPENDED", "TERMINATED")


@dataclass(frozen=True)
class GroupMachine(GroupMember):
    """A machine of the group, and where Google has it."""

    zone: str = ""


def spell_group_path(account: GcpAccount, stack: GcpStack) -> str:
    """Return where the group is."""
    return f"{account.here}/instanceGroupManagers/{stack.name}"


def find_group(account: GcpAccount, stack: GcpStack) -> MachineGroup | None:
    """Return the group; None where there is none. Raises FleetError."""
    raw = account.find("compute", spell_group_path(account, stack))
    if raw is None:
        return None
    managed = list(_managed(account, stack))
    known = {each["name"]: each for each in list_labelled(account, stack, "instances")} if managed else {}
    there = [each for each in managed if each.get("instanceStatus") and each.get("currentAction") not in _LEAVING]
    members = tuple(sorted((_machine(each, known, stack) for each in there), key=lambda each: each.id))
    ends = [each.ends for each in members if each.ends is not None]
    counted = frozenset(_name(each["instance"]) for each in managed)
    return MachineGroup(int(raw["targetSize"]), members, max(ends, default=None), counted)


def list_labelled(account: GcpAccount, stack: GcpStack, what: str, label: str = STACK) -> list[dict[str, Any]]:
    """Return what is labelled as the stack's (or its project's), of "instances" or "disks", each with its zone's name.

    Raises FleetError.
    """
    asked = {"filter": f'labels.{label}="{stack.labels[label]}"', "returnPartialSuccess": "true"}
    pages = account.pages("GET", f"{account.place}/aggregated/{what}", **asked)
    scopes = ((_name(name), scope) for page in pages for name, scope in page.get("items", {}).items())
    return [{**each, "zone": zone} for zone, scope in scopes for each in scope.get(what, ())]


def _managed(account: GcpAccount, stack: GcpStack) -> Iterable[dict[str, Any]]:
    for page in account.pages("POST", f"{spell_group_path(account, stack)}/listManagedInstances"):
        yield from page.get("managedInstances", ())


def _machine(raw: Mapping[str, Any], known: Mapping[str, Any], stack: GcpStack) -> GroupMachine:
    name, status = _name(raw["instance"]), raw["instanceStatus"]
    said = known.get(name, {})
    state = SHUT if status in _SHUT else "" if status == "RUNNING" else status.lower()
    return GroupMachine(
        id=name,
        type=_name(said.get("machineType", "")),
        made=stack.made(raw.get("version", {}).get("instanceTemplate", "")),
        state=state,
        since=parse_time(said.get("creationTimestamp")) or 0.0,
        zone=raw["instance"].split("/")[-3],
        ends=parse_time(said.get("scheduling", {}).get("terminationTime")),
    )


def _name(link: str) -> str:
    return link.rpartition("/")[2]


def parse_time(said: str | None) -> float | None:
    """Return a time as Google writes it, in seconds since the epoch; None for none."""
    try:
        return datetime.fromisoformat(said).timestamp() if said else None
    except ValueError:
        return None


def resize_group(account: GcpAccount, stack: GcpStack, machines: int) -> None:
    """Have the group be of so many machines. Raises FleetError."""
    account.ask("POST", "compute", f"{spell_group_path(account, stack)}/resize", size=str(machines))


def retire_machines(account: GcpAccount, stack: GcpStack, members: Iterable[GroupMember]) -> None:
    """End machines, and make the group smaller by them. One that has just gone is none. Raises FleetError."""
    links = [f"zones/{each.zone}/instances/{each.id}" for each in members if isinstance(each, GroupMachine)]
    if links:
        asked = {"instances": links, "skipInstancesOnValidationError": True}
        account.ask("POST", "compute", f"{spell_group_path(account, stack)}/deleteInstances", asked)


def explain_trouble(account: GcpAccount, stack: GcpStack) -> tuple[str, bool]:
    """Return why the group gets no machines, in our words, and whether that may pass by itself; "" where it gets some.

    Raises FleetError.
    """
    for each in _managed(account, stack):
        found = each.get("lastAttempt", {}).get("errors", {}).get("errors", ())
        if found and not each.get("instanceStatus"):
            text = f"{found[0].get('code', '')}: {found[0].get('message', '')}"
            known = translate_cloud_error(text)
            return (known.message if known else text), bool(NO_CAPACITY[0].search(text))
    return "", True
