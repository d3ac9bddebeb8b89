"""What becomes of hosts, and what there is of them, in words for plans and lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from monkey.errors import FleetError
from monkey.fleet.fleet_records import Instance
from monkey.plan.cost import MachineChange
from monkey_stacks.engine.engine_outcome import ResourceChange, ResourceOp, StateResource, format_property
from monkey_stacks.ssh.host_resource import AWAY, DRIFT, TROUBLE


def check_apart(seen: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise FleetError where two of these hosts, known by their outputs, are one machine: agents would share it."""
    met: dict[tuple[str, str], str] = {}
    for name, outputs in seen.items():
        if "where" not in outputs:
            continue
        first = met.setdefault((outputs["where"], outputs["user"]), name)
        if first != name:
            raise FleetError(
                f"{first} and {name} are the same machine ({outputs['machine']})",
                hint="leave one of them in 'hosts:' of monkey.yaml; max_slots: says how many jobs it runs at once",
            )


def describe_creation(host: str, seen: Mapping[str, Any]) -> MachineChange:
    """Return what becomes of a host that has no agent yet; `seen`: its outputs, as they were found just now."""
    if seen.get(AWAY):
        return MachineChange("create", host, trouble=seen[DRIFT])
    return MachineChange("create", host, f"agent, {seen['about']}")


def describe_machine_change(change: ResourceChange, seen: Mapping[str, Any]) -> MachineChange:
    """Return a change of Pulumi's in words; `seen`: the host's outputs, as they were found just now."""
    if change.op is ResourceOp.DELETE:
        return MachineChange(change.op, change.name, "everything of it is taken away")
    values = zip(change.forced_by, change.before, change.after, strict=True)
    hindered = seen.get(AWAY) or seen.get(TROUBLE)
    anew = "left as it is, for it cannot be moved" if hindered else "taken away and set up anew"
    said = [anew] if change.op is ResourceOp.REPLACE else []
    said += [_difference(name, before, after) for name, before, after in values if name != DRIFT]
    if seen.get(AWAY):
        return MachineChange(change.op, change.name, "; ".join(said), trouble=seen[DRIFT])
    why = "; ".join(filter(None, [seen.get(DRIFT), *said]))
    return MachineChange(change.op, change.name, why, trouble=seen.get(TROUBLE, ""))


def warn_of_unusable_hosts(hosts: Sequence[str], changes: Sequence[MachineChange]) -> list[str]:
    """Warn where not one of the hosts can be used now: alone, that makes no plan an error, for it may pass."""
    stuck = {change.machine for change in changes if change.trouble}
    if not hosts or not stuck.issuperset(hosts):
        return []
    return ["warning: no machine of this provider can be used now: as long as it is so, nothing is begun there"]


def _difference(name: str, before: Any, after: Any) -> str:
    if name == "agent":
        return "another version of the agent"
    if name == "interrupted":
        return "an apply was cut off in the middle"
    return f"{name} {format_property(before)} → {format_property(after)}"


def describe_instance(resource: StateResource) -> Instance:
    """Return a host of Pulumi's state as lists show it."""
    told = {**resource.inputs, **resource.outputs}
    machine = str(told.get("machine", ""))
    about = "being changed now, or what changed it was cut off" if resource.interrupted else str(told.get("about", ""))
    return Instance(resource.name, (machine,) if machine else (), about)
