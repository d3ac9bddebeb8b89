"""The audit of rented machines: the differences from the record that all clouds report alike."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

from monkey.fleet.fleet_records import AuditFinding, ForeignResource, TaggedResource
from monkey_stacks.boot import BOOT_PATIENCE
from monkey_stacks.cloud.scaling import SHUT, MachineGroup
from monkey_stacks.engine.engine_outcome import StateResource

APPLY = "`monkey apply` makes it so"
OTHERS = "tagged as this project's, and of another store, or of one that is gone"
ASTRAY = "`monkey apply` takes it away as long as there is work, `monkey destroy` always"
CUT = "`monkey apply` makes it whole, `monkey destroy` takes it away"


#: Kinds of resources that cost by their size, at a price that is unknown.
_BY_SIZE = ("volume", "disk")


class CloudResource(Protocol):
    """A resource at a cloud."""

    @property
    def kind(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def id(self) -> str: ...


def make_tagged_resource(
    region: str, thing: CloudResource, prices: Mapping[str, float], of: ForeignResource | None = None
) -> TaggedResource:
    """Return a resource with its price per hour; `prices`: USD per hour of one machine, by its type."""
    kind = thing.kind.replace("-", " ")
    if thing.kind == "instance":
        return TaggedResource(region, f"{kind} {thing.type}", thing.id, prices.get(thing.type), of)
    return TaggedResource(region, kind, thing.id, None if thing.kind in _BY_SIZE else 0.0, of)


def describe_stranger(fleet: str, stack: str, ours: bool, listing: str) -> ForeignResource:
    """Return the owner of a resource of another stack; `ours`: it is of this store. `listing`: a command for people."""
    text = "of this store, though it knows of no such provider any more" if ours else OTHERS
    again = "with this provider in monkey.yaml again" if ours else "where that store is, with it in monkey.yaml"
    gone = "" if ours else f"; where it is gone, take away what `{listing}` lists"
    return ForeignResource(
        fleet, stack, text, f"{again}, `monkey destroy --fleet {fleet or 'NAME'}` takes it away{gone}"
    )


def report_orphans(names: Iterable[str]) -> Iterator[AuditFinding]:
    """Yield a finding for each orphan: a resource at the cloud that no apply recorded."""
    for each in names:
        yield AuditFinding(each, "no apply has written it down", ASTRAY)


def report_missing(
    known: Iterable[StateResource], types: Collection[str], there: Collection[tuple[str, str]]
) -> Iterator[AuditFinding]:
    """Yield a finding for each recorded resource that was interrupted, or is of `types` and not in `there`.

    `there`: (type, id) of the resources that exist.
    """
    for each in known:
        if each.interrupted:
            yield AuditFinding(each.name, "an apply or a destroy of it was cut off", CUT)
        elif each.type in types and (each.type, each.id) not in there:
            yield AuditFinding(each.name, f"{each.id} is not there any more, though an apply made it", APPLY)


def report_mute(there: MachineGroup | None, heard: Collection[str] | None, console: str) -> Iterator[AuditFinding]:
    """Yield a finding for each machine without a living agent; `console`: the command for its output, {} its id."""
    if there is None or heard is None:
        return
    for each in there.members:
        if each.id not in heard and each.state != SHUT and time.time() - each.since > BOOT_PATIENCE:
            hint = f"`{console.format(each.id)}` may tell why; it should end itself"
            yield AuditFinding(each.id, "no agent lives on it, though there is work and it had time to boot", hint)
