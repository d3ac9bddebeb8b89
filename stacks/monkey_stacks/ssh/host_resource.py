"""The resource of a host: its inputs, its outputs and its id in Pulumi's state, and its provider's environment.

A plan needs no more than this: it reads the state as data, looks at hosts, and compares. Needs no Pulumi.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from monkey.errors import MonkeyError
from monkey.spec.job.counted_resources import read_counts, spell_counts
from monkey.spec.job.lease_length import LEASE
from monkey.spec.project.ssh_host import parse_ssh_host
from monkey_stacks.engine.engine_outcome import ResourceChange, ResourceOp, StateResource
from monkey_stacks.ssh import operations
from monkey_stacks.ssh.host_state import HostPlan, ObservedHost, list_differences
from monkey_stacks.ssh.remote.keep_alive import DETACHED

#: As Pulumi calls it; the class of `ssh.program` has the names in it.
HOST_TYPE = "pulumi-python:dynamic/monkey:Host"

#: Names the variable by which a provider gets what is written down nowhere.
HANDED = "MONKEY_HANDED"

#: Inputs that make another machine of it: everything would be in another place.
PLACE = ("host", "workdir", "store", "project", "fleet")

#: In the outputs: in what the host was found not to be as it had been left. As an input it is always empty.
DRIFT = "drift"

#: All inputs.
INPUTS = (
    *PLACE,
    "max_slots",
    "idle_timeout",
    "cache_size",
    "gpus",
    "runtime",
    "resources",
    "lease",
    "mounts",
    "agent",
    DRIFT,
)

#: Inputs and outputs that are texts, and those that every host has.
_OUTPUT_TEXTS = ("machine", "where", "user", "about", "bundle", "trouble", "memory", "others")
_TEXTS = (*PLACE, "runtime", "agent", "resources", "mounts", DRIFT, *_OUTPUT_TEXTS)
_NEEDED = (*PLACE, "idle_timeout", "agent")

#: In the outputs: it could not even be looked at.
AWAY = "away"

#: In the outputs: why nothing could be changed there now, though it was looked at.
TROUBLE = "trouble"

#: In the outputs that a plan sees: why no image can be run there. Only plans ask, and no state keeps it.
LACKS_RUNTIME = "lacks_runtime"


@dataclass(frozen=True)
class ProviderEnvironment:
    """What providers get besides the inputs, by their environment: it must not enter the state."""

    secrets: Mapping[str, str] = field(default_factory=dict)
    #: Names of secrets whose values stay as the hosts have them.
    kept: tuple[str, ...] = ()
    credentials: Mapping[str, str] = field(default_factory=dict)
    #: The list of those that agents obey.
    signers: str = ""
    #: There is nothing to do: an agent that has left need not come back.
    idle: bool = False
    #: See `HostPlan.images`; never while Pulumi works, which would keep the answer.
    images: bool = False

    @property
    def environment(self) -> dict[str, str]:
        """Return the variable that carries it."""
        return {HANDED: json.dumps(asdict(self))}


def make_identity(inputs: Mapping[str, Any]) -> str:
    """Return the id under which Pulumi knows a host, made from its inputs: one being set up is found again by it."""
    return f"{inputs['host']}:{inputs['workdir']}"


def make_host_inputs(host: str, wanted: HostPlan, agent: str) -> dict[str, Any]:
    """Return the inputs of one host; `agent`: what tells an agent's code from others'."""
    said = {
        "host": host,
        "workdir": wanted.workdir,
        "store": wanted.store,
        "project": wanted.project,
        "fleet": wanted.fleet,
        "max_slots": wanted.max_slots,
        "idle_timeout": wanted.idle_timeout,
        "cache_size": wanted.cache_size,
        "gpus": wanted.gpus if isinstance(wanted.gpus, str) else list(wanted.gpus),
        "runtime": wanted.runtime,
        "resources": spell_counts(wanted.resources) or None,
        "lease": wanted.lease if wanted.lease != LEASE else None,
        "mounts": wanted.mounts or None,
        "agent": agent,
        DRIFT: "",
    }
    return {name: value for name, value in said.items() if value is not None}


def list_bound_inputs(hosts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the inputs of hosts that a saved plan is bound to: without the agent's code, which each applier brings."""
    return [{name: value for name, value in host.items() if name not in ("agent", DRIFT)} for host in hosts]


def parse_host_plan(props: Mapping[str, Any], handed: ProviderEnvironment) -> HostPlan:
    """Return what inputs (or outputs) ask of a host; Pulumi's numbers are all floats."""
    slots, size, gpus = props.get("max_slots"), props.get("cache_size"), props.get("gpus", "auto")
    return HostPlan(
        store=props["store"],
        project=props["project"],
        fleet=props["fleet"],
        workdir=props["workdir"],
        max_slots=None if slots is None else int(slots),
        idle_timeout=float(props["idle_timeout"]),
        cache_size=None if size is None else int(size),
        gpus=gpus if isinstance(gpus, str) else tuple(map(int, gpus)),
        runtime=props.get("runtime"),
        resources=read_counts(props.get("resources", "")),
        lease=float(props.get("lease", LEASE)),
        mounts=props.get("mounts", ""),
        secrets=handed.secrets,
        kept=handed.kept,
        credentials=handed.credentials,
        signers=handed.signers,
        images=handed.images,
    )


def refresh_outputs(props: Mapping[str, Any], handed: ProviderEnvironment) -> dict[str, Any]:
    """Return the outputs of a host as they are now: with the drift, or why it cannot be looked at."""
    # A state may still have what an earlier apply saw; the host may have a runtime by now.
    props = {name: value for name, value in props.items() if name != LACKS_RUNTIME}
    wanted = parse_host_plan(props, handed)
    try:
        seen = operations.observe_host(parse_ssh_host(props["host"]), wanted)
    except MonkeyError as exc:
        return {**props, DRIFT: format_error_lines(exc), AWAY: True}
    drift = list_differences(seen, wanted, props.get("bundle", ""), idle=handed.idle)
    said = {DRIFT: "; ".join(drift), AWAY: False, TROUBLE: ""}
    try:
        operations.check_host_fits(parse_ssh_host(props["host"]), seen, wanted)
    except MonkeyError as exc:
        said[TROUBLE] = format_error_lines(exc)
    return {**props, **read_outputs(seen), **said}


def preview_outputs(host: str, wanted: HostPlan) -> dict[str, Any]:
    """Return what the outputs of a host would be that has no agent yet, or why it cannot have one."""
    try:
        return read_outputs(operations.inspect_host(parse_ssh_host(host), wanted))
    except MonkeyError as exc:
        return {DRIFT: format_error_lines(exc), AWAY: True}


def format_error_lines(exc: MonkeyError) -> str:
    """Return an error and its hint as lines."""
    return f"{exc.message}\nhint: {exc.hint}" if exc.hint else exc.message


def read_outputs(seen: ObservedHost) -> dict[str, Any]:
    """Return what is worth knowing of a host without asking it again."""
    told = {"machine": seen.name, "where": seen.host, "user": seen.user, "about": describe_keep_alive(seen)}
    told |= {"memory": seen.memory, "others": ", ".join(seen.others)}
    return told | ({LACKS_RUNTIME: seen.lacks_runtime} if seen.lacks_runtime else {})


def describe_keep_alive(seen: ObservedHost) -> str:
    """Say how an agent is kept alive there."""
    keeping = seen.keeping
    if keeping == DETACHED:
        return "detached: a reboot ends it (no lingering, no crontab)"
    return f"kept alive by {keeping}, begun again after a reboot"


def inspect_host_record(resource: StateResource, project: str, fleet: str) -> str:
    """Return what is wrong with a host of the state: see `monkey_stacks.state.state_rules.Inspect`."""
    for found in filter(None, (resource.inputs, resource.outputs)):
        if lacking := [name for name in _NEEDED if name not in found]:
            return f"lacks {lacking[0]!r}; `monkey destroy` of the version that wrote it takes such a host away"
        if wrong := [name for name, value in found.items() if not _is_of_its_type(name, value)]:
            return f"has {wrong[0]!r} of another type than monkey writes"
        if (found["project"], found["fleet"]) != (project, fleet):
            return f"is of fleet {found['fleet']!r} of project {found['project']!r}"
        if found["host"] != resource.name or any(found[name] != resource.inputs.get(name) for name in PLACE):
            return f"is the host {found['host']!r} in another place"
        try:
            parse_ssh_host(found["host"])
        except MonkeyError as exc:
            return f"is no host: {exc.message}"
    if not resource.inputs or resource.id not in ("", make_identity(resource.inputs)):
        return f"has the id {resource.id!r}"
    return ""


def _is_of_its_type(name: str, value: Any) -> bool:
    if name in ("max_slots", "cache_size", "idle_timeout", "lease"):
        whole = name in ("idle_timeout", "lease") or _is_whole(value)
        return whole and isinstance(value, int | float) and not isinstance(value, bool)
    if name == "gpus":
        return isinstance(value, str) or (isinstance(value, list) and all(map(_is_whole, value)))
    return isinstance(value, bool) if name == AWAY else isinstance(value, str) or name not in _TEXTS


def _is_whole(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and float(value).is_integer()


def list_host_changes(
    inputs: Sequence[Mapping[str, Any]], known: Mapping[str, StateResource], seen: Mapping[str, Mapping[str, Any]]
) -> list[ResourceChange]:
    """Return what an apply would change of the hosts in the state, as Pulumi does: by their inputs, and by drift.

    `inputs`: those of all hosts that are wanted; `known`: the state; `seen`: outputs of the state's hosts, as found.
    """
    wanted = {each["host"]: each for each in inputs}
    changes = [ResourceChange(ResourceOp.DELETE, HOST_TYPE, host) for host in known if host not in wanted]
    for host in (host for host in wanted if host in known):
        old, new = known[host].inputs, wanted[host]
        differing = [name for name in INPUTS if old.get(name) != new.get(name)]
        moved = [name for name in differing if name in PLACE]
        op = ResourceOp.REPLACE if moved else ResourceOp.UPDATE
        names = moved or differing or ([DRIFT] if seen.get(host, {}).get(DRIFT) else [])
        names = names or (["interrupted"] if known[host].interrupted else [])
        if names:
            before, after = (tuple(map(each.get, names)) for each in (old, new))
            changes.append(ResourceChange(op, HOST_TYPE, host, tuple(names), before, after))
    return changes
