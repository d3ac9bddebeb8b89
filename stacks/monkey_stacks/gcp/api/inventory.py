"""The inventory of a stack at Google, by names and labels, whatever our state says; and its orphans.

All that Pulumi makes has a name that follows from the stack. So a resource of an interrupted run is found by its name.
A resource of such a name that is not in the state is an orphan. It came from an apply that lost its lock during a
request, or from a state that was removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from monkey.fleet.fleet_port import Say
from monkey_stacks.cloud.scaling import MachineGroup
from monkey_stacks.engine.engine_outcome import StateResource
from monkey_stacks.gcp.api import group
from monkey_stacks.gcp.api.account import GcpAccount
from monkey_stacks.gcp.api.naming import FLEET_LABEL, PROJECT, STACK, GcpStack, make_name_prefix

#: Kind of a resource to Pulumi's type, in the order in which they can be removed.
TYPES = {
    "instance-group": "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager",
    "instance-template": "gcp:compute/instanceTemplate:InstanceTemplate",
    "firewall": "gcp:compute/firewall:Firewall",
    "subnetwork": "gcp:compute/subnetwork:Subnetwork",
    "network": "gcp:compute/network:Network",
    "service-account": "gcp:serviceaccount/account:Account",
}
_FORMS = {
    "instance-group": "projects/{project}/regions/{region}/instanceGroupManagers/{name}",
    "instance-template": "projects/{project}/global/instanceTemplates/{name}",
    "firewall": "projects/{project}/global/firewalls/{name}",
    "subnetwork": "projects/{project}/regions/{region}/subnetworks/{name}",
    "network": "projects/{project}/global/networks/{name}",
}
#: Pulumi's type of a granted right, which is no resource of its own, to the form of its id.
_GIVEN = {
    "gcp:storage/bucketIAMMember:BucketIAMMember": "b/{bucket}/{role}/{member}",
    "gcp:secretmanager/secretIamMember:SecretIamMember": "projects/{project}/secrets/{secretId}/{role}/{member}",
    "gcp:projects/iAMMember:IAMMember": "{project}/{role}/{member}",
}
#: All types that a program registers.
REGISTERED = frozenset((*TYPES.values(), *_GIVEN))
#: Kinds that come and go with the group, and are not Pulumi's.
_MACHINE_KINDS = ("instance", "disk")
#: Order of removal: a group would make its machines again, and machines use all other resources.
_ORDER = ("instance-group", *_MACHINE_KINDS, *(kind for kind in TYPES if kind != "instance-group"))


@dataclass(frozen=True)
class GcpResource:
    """A resource of a stack at Google."""

    #: One of TYPES, or of _MACHINE_KINDS.
    kind: str
    #: Its id for Pulumi; for a machine or a disk, its name.
    id: str
    #: Type of a machine: "g2-standard-8".
    type: str = ""
    #: Zone of a machine or a disk.
    zone: str = ""

    @property
    def name(self) -> str:
        """Return its name for people."""
        return f"{self.kind.replace('-', ' ')} {self.id.rpartition('/')[2]}"


def name_service_account(account: GcpAccount, stack: GcpStack) -> str:
    """Return the address of the machines' service account; the project of a domain is named "domain:name"."""
    project = ".".join(reversed(account.project.split(":")))
    return f"{stack.account}@{project}.iam.gserviceaccount.com"


def identify_resource(account: GcpAccount, stack: GcpStack, type_: str, inputs: Mapping[str, Any]) -> str | None:
    """Return the id of a resource in interrupted creation: see `monkey_stacks.engine.engine_outcome.Identify`."""
    kind = next((kind for kind, known in TYPES.items() if known == type_), None)
    if kind == "service-account":
        return f"projects/{account.project}/serviceAccounts/{name_service_account(account, stack)}"
    if kind is not None:
        return _FORMS[kind].format(project=account.project, region=account.region, name=inputs["name"])
    if type_ not in _GIVEN:
        return None
    title = (inputs.get("condition") or {}).get("title", "")
    return "/".join(filter(None, [_GIVEN[type_].format(**inputs), title]))


def list_stack(account: GcpAccount, stack: GcpStack) -> tuple[GcpResource, ...]:
    """Return all resources of a stack, with its machines. Raises FleetError."""
    with ThreadPoolExecutor(len(TYPES) + 2) as crew:
        lots = crew.map(lambda kind: _of_kind(account, stack, kind), (*TYPES, *_MACHINE_KINDS))
        return tuple(each for lot in lots for each in lot)


def list_others(account: GcpAccount, stack: GcpStack) -> dict[GcpStack, tuple[GcpResource, ...]]:
    """Return the resources that are labelled as the project's and not as this stack's, by stack. Raises FleetError.

    A stack is found by its machines, disks and templates. A network or an account has no labels: without those of its
    stack, it is not found.
    """
    templates = f"projects/{account.project}/global/instanceTemplates"
    found: dict[GcpStack, list[GcpResource]] = {}
    for kind in _MACHINE_KINDS:
        for raw in group.list_labelled(account, stack, f"{kind}s", PROJECT):
            if kind == "instance" or not raw.get("users"):
                thing = GcpResource(kind, raw["name"], raw.get("machineType", "").rpartition("/")[2])
                found.setdefault(_owner(stack, raw.get("labels", {})), []).append(thing)
    for page in account.pages("GET", f"compute/v1/{templates}", filter=f"name eq {make_name_prefix(stack.project)}.*"):
        for raw in page.get("items", ()):
            labels = raw.get("properties", {}).get("labels", {})
            if labels.get(PROJECT) == stack.labels[PROJECT]:
                thing = GcpResource("instance-template", f"{templates}/{raw['name']}")
                found.setdefault(_owner(stack, labels), []).append(thing)
    alien = {other: things for other, things in found.items() if other.id != stack.id}
    whole = {other: list_stack(account, other) if other.id else () for other in alien}
    return {other: tuple(dict.fromkeys([*things, *whole[other]])) for other, things in alien.items()}


def _owner(stack: GcpStack, labels: Mapping[str, str]) -> GcpStack:
    return GcpStack(stack.project, labels.get(FLEET_LABEL, ""), labels.get(STACK, ""))


def _of_kind(account: GcpAccount, stack: GcpStack, kind: str) -> list[GcpResource]:
    if kind == "instance":
        found = group.list_labelled(account, stack, "instances")
        return [GcpResource(kind, each["name"], each["machineType"].rpartition("/")[2], each["zone"]) for each in found]
    if kind == "disk":
        found = group.list_labelled(account, stack, "disks")
        return [GcpResource(kind, each["name"], zone=each["zone"]) for each in found if not each.get("users")]
    if kind == "instance-template":
        templates = f"projects/{account.project}/global/instanceTemplates"
        # Anchored at both ends, as Google has it.
        pages = account.pages("GET", f"compute/v1/{templates}", filter=f"name eq {stack.name}-.*")
        names = [each["name"] for page in pages for each in page.get("items", ())]
        return [GcpResource(kind, f"{templates}/{name}") for name in names if stack.made(name)]
    id_ = identify_resource(account, stack, TYPES[kind], {"name": stack.name})
    assert id_ is not None
    thing = GcpResource(kind, id_)
    return [thing] if account.find(*_where(account, thing)) is not None else []


def _where(account: GcpAccount, thing: GcpResource) -> tuple[str, str]:
    """Return the API that has a resource, and its path there."""
    if thing.kind in _MACHINE_KINDS:
        return "compute", f"{account.place}/zones/{thing.zone}/{thing.kind}s/{thing.id}"
    return ("iam", f"v1/{thing.id}") if thing.kind == "service-account" else ("compute", f"compute/v1/{thing.id}")


def find_orphans(
    account: GcpAccount, stack: GcpStack, things: Sequence[GcpResource], known: Sequence[StateResource]
) -> list[GcpResource]:
    """Return the resources, without machines, that the state does not have, and the next `up` will not find again."""
    ours = {(each.type, each.id or identify_resource(account, stack, each.type, each.inputs)) for each in known}
    return [each for each in things if each.kind not in _MACHINE_KINDS and (TYPES[each.kind], each.id) not in ours]


def find_loose_machines(things: Iterable[GcpResource], there: MachineGroup | None) -> list[GcpResource]:
    """Return the machines that no group counts, and their disks: a disk has the name of its machine.

    `there`: the group as read after `things`; otherwise, machines that have just come would be among them.
    """
    counted = there.counted if there is not None else frozenset[str]()
    return [each for each in things if each.kind in _MACHINE_KINDS and each.id not in counted]


def remove_resources(account: GcpAccount, things: Iterable[GcpResource], say: Say) -> None:
    """Remove resources, those that use others first. Raises FleetError where one cannot be removed."""
    for each in sorted(things, key=lambda each: _ORDER.index(each.kind)):
        account.remove(*_where(account, each))
        why = "no group counts it" if each.kind in _MACHINE_KINDS else "no apply had written it down"
        say(f"{each.name}: taken away, {why}")
