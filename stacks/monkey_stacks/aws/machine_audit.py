"""What AWS has of a fleet, against what Pulumi's state says that there is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from monkey.fleet.fleet_records import AuditFinding, TaggedResource
from monkey_stacks.aws.api import group, inventory, orphans
from monkey_stacks.aws.api.account import AwsAccount
from monkey_stacks.aws.api.inventory import TYPES, AwsResource
from monkey_stacks.aws.api.naming import PROJECT, STACK, AwsStack
from monkey_stacks.cloud import rental_audit
from monkey_stacks.cloud.scaling import MachineGroup
from monkey_stacks.engine.engine_outcome import StateResource


def audit_stack(
    account: AwsAccount, stack: AwsStack, known: Sequence[StateResource], heard: Collection[str] | None
) -> tuple[AuditFinding, ...]:
    """Ask AWS for all that is tagged as this stack's, and compare. Raises FleetError.

    `heard`: ids of machines whose agents live, where there is work, so that each should have one.
    """
    things = inventory.list_stack(account, stack)
    there = group.find_group(account, stack)
    astray = rental_audit.report_orphans(each.name for each in orphans.find_orphans(things, known))
    ids = {(TYPES.get(each.kind, ""), each.id) for each in things}
    missing = rental_audit.report_missing(known, TYPES.values(), ids)
    console = f"aws ec2 get-console-output --region {account.region} --instance-id {{}}"
    mute = rental_audit.report_mute(there, heard, console)
    return (*astray, *missing, *check_bounds(there, known), *_machines(account, things, there), *mute)


def check_bounds(there: MachineGroup | None, known: Sequence[StateResource]) -> Iterator[AuditFinding]:
    """Yield how small and how large the group may be, where another user changed that."""
    asked = next((each.inputs for each in known if each.type == TYPES["auto-scaling-group"]), {})
    for key, word, found in (("minSize", "fewest", there and there.least), ("maxSize", "most", there and there.most)):
        if found is not None and key in asked and int(asked[key]) != found:
            text = f"the {word} machines that it may have are {found}, and an apply wrote down {int(asked[key])}"
            yield AuditFinding("group", text, rental_audit.APPLY)


def _machines(account: AwsAccount, things: Sequence[AwsResource], there: MachineGroup | None) -> Iterator[AuditFinding]:
    ours = there.counted if there is not None else frozenset()
    for each in things:
        if each.kind == "instance" and each.id not in ours:
            ends = f"aws ec2 terminate-instances --region {account.region} --instance-ids {each.id}"
            hint = f"`{ends}`; `monkey destroy` does so too"
            yield AuditFinding(each.id, "a machine that no group counts: nothing ends it", hint)
    if there is not None and there.desired and there.expires is None:
        yield AuditFinding("group", "nothing empties it when its sweeps expire", rental_audit.APPLY)


def find_tagged_resources(
    account: AwsAccount, stack: AwsStack, prices: Mapping[str, float], here: Callable[[str], AwsStack]
) -> tuple[TaggedResource, ...]:
    """Return all that AWS has of the project, with what it costs an hour. Raises FleetError.

    `here`: returns the stack of a fleet of this store.
    """
    found = [
        rental_audit.make_tagged_resource(account.region, each, prices) for each in inventory.list_stack(account, stack)
    ]
    for other, things in inventory.list_others(account, stack).items():
        tag = f"Key={STACK},Values={other.id}" if other.id else f"Key={PROJECT},Values={other.project}"
        listing = f"aws resourcegroupstaggingapi get-resources --region {account.region} --tag-filters {tag}"
        of = rental_audit.describe_stranger(other.fleet, other.id, here(other.fleet) == other, listing)
        found += [rental_audit.make_tagged_resource(account.region, each, prices, of) for each in things]
    return tuple(found)
