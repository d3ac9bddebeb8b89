"""What Google has of a fleet, against what Pulumi's state says that there is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from monkey.fleet.fleet_records import AuditFinding, TaggedResource
from monkey_stacks.cloud import rental_audit
from monkey_stacks.cloud.scaling import SHUT, MachineGroup
from monkey_stacks.engine.engine_outcome import StateResource
from monkey_stacks.gcp.api import group, inventory
from monkey_stacks.gcp.api.account import GcpAccount
from monkey_stacks.gcp.api.inventory import TYPES, GcpResource
from monkey_stacks.gcp.api.naming import PROJECT, STACK, GcpStack


def audit_stack(
    account: GcpAccount, stack: GcpStack, known: Sequence[StateResource], heard: Collection[str] | None
) -> tuple[AuditFinding, ...]:
    """Ask Google for all that is called as this stack's is, and compare. Raises FleetError.

    `heard`: ids of machines whose agents live, where there is work, so that each should have one.
    """
    things = inventory.list_stack(account, stack)
    there = group.find_group(account, stack)
    astray = rental_audit.report_orphans(each.name for each in inventory.find_orphans(account, stack, things, known))
    ids = {(TYPES[each.kind], each.id) for each in things if each.kind in TYPES}
    missing = rental_audit.report_missing(known, TYPES.values(), ids)
    console = f"gcloud compute instances get-serial-port-output {{}} --project {account.project}"
    mute = rental_audit.report_mute(there, heard, console)
    return (*astray, *missing, *_machines(account, things, there), *mute)


def _machines(account: GcpAccount, things: Sequence[GcpResource], there: MachineGroup | None) -> Iterator[AuditFinding]:
    for each in inventory.find_loose_machines(things, there):
        machine = each.kind == "instance"
        text = "a machine that no group counts: nothing ends it before its time"
        ends = f"gcloud compute {each.kind}s delete {each.id} --zone {each.zone} --project {account.project}"
        hint = f"{rental_audit.ASTRAY}; so does `{ends}`"
        yield AuditFinding(each.id, text if machine else "a disk that no machine has", hint)
    for member in there.members if there is not None else ():
        if member.state == SHUT:
            yield AuditFinding(member.id, "it has shut down, and its disk is paid for", "`monkey apply` takes it away")
        elif getattr(member, "ends", None) is None:
            yield AuditFinding(member.id, "nothing ends it when its sweeps expire", "`monkey destroy`, and apply again")


def find_tagged_resources(
    account: GcpAccount, stack: GcpStack, prices: Mapping[str, float], here: Callable[[str], GcpStack]
) -> tuple[TaggedResource, ...]:
    """Return all that Google has of the monkey project, with what it costs an hour. Raises FleetError.

    `here`: returns the stack of a fleet of this store.
    """
    found = [
        rental_audit.make_tagged_resource(account.region, each, prices) for each in inventory.list_stack(account, stack)
    ]
    for other, things in inventory.list_others(account, stack).items():
        label = f"{STACK}={other.id}" if other.id else f"{PROJECT}={stack.labels[PROJECT]}"
        listing = f"gcloud compute instances list --project {account.project} --filter labels.{label}"
        of = rental_audit.describe_stranger(other.fleet, other.id, here(other.fleet) == other, listing)
        found += [rental_audit.make_tagged_resource(account.region, each, prices, of) for each in things]
    return tuple(found)
