"""What becomes of hosts, and what there is of them, in words for plans and lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from monkey.errors import FleetError
from monkey.fleet.fleet_records import FleetWork, Instance
from monkey.fleet.machine_capacity import describe_memory_limits
from monkey.plan.cost import MachineChange
from monkey_stacks.engine.engine_outcome import ResourceChange, ResourceOp, StateResource, format_property
from monkey_stacks.ssh.host_resource import AWAY, DRIFT, LACKS_RUNTIME, TROUBLE


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


def describe_new_host(host: str, seen: Mapping[str, Any]) -> MachineChange:
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


def warn_of_missing_runtimes(hosts: Sequence[str], seen: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Warn of hosts that cannot run the images of jobs; `seen`: their outputs, as they were found just now."""
    lacks = {host: seen[host][LACKS_RUNTIME] for host in hosts if seen.get(host, {}).get(LACKS_RUNTIME)}
    notes = [f"warning: {host} runs no job with an image: {why}" for host, why in lacks.items()]
    if lacks and len(lacks) == len(hosts):
        notes.append("warning: no machine of this provider runs images: such jobs stay queued as long as it is so")
    return notes


def describe_missing_runtimes(seen: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return why hosts run no images, or do not answer, and what to do; `seen`: their outputs, as found just now."""
    found = []
    for host, told in seen.items():
        if told.get(AWAY):
            why, _, hint = told[DRIFT].partition("\nhint: ")
            found.append((why, hint))
        elif why := told.get(LACKS_RUNTIME, ""):
            why, _, hint = why.removesuffix(")").partition(" (hint: ")
            found.append((f"{host} runs no job with an image: {why}", hint))
    return found


def describe_limits(
    fleet: str, work: FleetWork, seen: Mapping[str, Mapping[str, Any]], max_slots: int | None
) -> list[str]:
    """Say how hosts hold the memory of jobs, and on which of them other users' agents share nothing with ours.

    `seen`: the hosts' outputs, as they were found just now.
    """
    notes = describe_memory_limits(work.asked, {host: told.get("memory", "") for host, told in seen.items()})
    if max_slots is None:
        for host, told in seen.items():
            if told.get("others") and not told.get(AWAY):
                notes.append(
                    f"{host} has agents of {told['others']}, too, which share no CPU or memory with ours: "
                    f"agree on max_slots of {fleet}"
                )
    return notes


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
