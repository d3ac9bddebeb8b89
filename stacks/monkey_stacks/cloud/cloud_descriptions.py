"""What becomes of machines that are rented, in words for plans and lists: those that are the same for every cloud."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

from monkey.errors import FleetError
from monkey.plan.cost import MachineChange
from monkey.plan.sizes import format_size
from monkey.spec.job.expires import format_utc_time
from monkey_stacks.cloud.scaling import ROUNDED, SHUT, GroupMember, MachineGroup
from monkey_stacks.engine import errors
from monkey_stacks.engine.engine_outcome import (
    EngineOutcome,
    ResourceChange,
    ResourceFailure,
    ResourceOp,
    StateResource,
    format_property,
)

#: What a person reads when a step is done.
DONE = {
    ResourceOp.CREATE: "made",
    ResourceOp.UPDATE: "updated",
    ResourceOp.REPLACE: "replaced",
    ResourceOp.DELETE: "taken away",
}
#: What machines are told when they boot, as a plan has it.
TOLD = "settings that machines are told when they boot"
#: How that begins which makes a machine outdated, of all that is told of what it is made from.
_OUTDATING = ("image ", "image's version ", "disk ", "kind of disk ", "spot ", "zones ", "network ", TOLD)
#: Longer values are told of by name alone.
_LONG = 60
#: So many of many things are told of by name.
_FEW = 3

#: Says a difference of a resource's property in words: (name, before, after), or None where nobody has special ones.
Differing = Callable[[str, Any, Any], str | None]


class CloudFleetPlan(Protocol):
    """What a fleet is to be, at whatever cloud."""

    @property
    def types(self) -> tuple[str, ...]:
        """Types of machines, the one that is liked best first."""

    @property
    def max_instances(self) -> int:
        """Machines at once, at most."""

    @property
    def made(self) -> str:
        """What a machine is made from: one that was made from something else is outdated."""

    @property
    def disk(self) -> int:
        """Bytes of a machine's disk that monkey.yaml asks for."""

    @property
    def gibibytes(self) -> int:
        """What a machine's disk has then."""

    @property
    def bound(self) -> Mapping[str, Any]:
        """All of it as JSON, long texts by their hashes."""


def describe_property_changes(change: ResourceChange, names: Mapping[str, str], special: Differing) -> MachineChange:
    """Return a change of Pulumi's in words; `names`: properties as monkey.yaml has them."""
    if change.op is ResourceOp.CREATE:
        return MachineChange("create", change.name, part=True)
    if change.op is ResourceOp.DELETE:
        return MachineChange("delete", change.name, part=True)
    values = zip(change.forced_by, change.before, change.after, strict=True)
    # By name: Pulumi has another order each time.
    ordered = sorted(values, key=lambda each: each[0])
    said = [_difference(name, before, after, names, special) for name, before, after in ordered]
    return MachineChange(change.op, change.name, "; ".join(dict.fromkeys(filter(None, said))), part=True)


def _difference(name: str, before: Any, after: Any, names: Mapping[str, str], special: Differing) -> str:
    if name == "interrupted":
        return "an apply was cut off in the middle"
    if (said := special(name, before, after)) is not None:
        return said
    plain = isinstance(before, str | int | float | None) and isinstance(after, str | int | float | None)
    if plain and max(len(str(before)), len(str(after))) <= _LONG:
        return f"{names.get(name, name)} {format_property(before)} → {format_property(after)}"
    return f"{names.get(name, name)} changes"


def describe_disk(before: float | None, after: float | None) -> str:
    """Say how a disk's size changes, both in GiB; "" where it does not."""
    sizes = [format_property(each) if each is None else f"{format_property(each)}GiB" for each in (before, after)]
    return f"disk {sizes[0]} → {sizes[1]}" if before != after else ""


def describe_outdated(
    member: GroupMember, wanted: CloudFleetPlan, key: str, parts: Iterable[MachineChange]
) -> MachineChange:
    """Return what becomes of a machine that is made from something else than new ones are; `key`: of their types.

    `parts`: what becomes of that which machines are made from.
    """
    if member.state == SHUT:
        return MachineChange("replace", member.id, "it has shut down")
    other = member.type not in wanted.types
    said = [f"{key} {member.type} → {' or '.join(wanted.types)}"] if other else []
    said += [why for part in parts for why in part.why.split("; ") if why.startswith(_OUTDATING)]
    return MachineChange("replace", member.id, "; ".join(dict.fromkeys(said)) or "made with earlier settings")


def explain_remaking(change: MachineChange, known: Sequence[StateResource]) -> MachineChange:
    """Return a change with why a part of a fleet is made, of which the state has some already."""
    if change.op != "create":
        return change
    mine = [each for each in known if each.name == change.machine]
    if any(not each.interrupted for each in mine):
        why = "it is not there any more, though an apply made it"
    elif mine or not any(each.name == "group" for each in known):
        why = "an apply or a destroy was cut off"
    else:
        return change
    return replace(change, why="; ".join(filter(None, (why, change.why))))


def describe_missing_group(word: str, names: Sequence[str]) -> str:
    """Say that a fleet's group is not there, and which of its other parts are written down; `word`: the cloud's."""
    left = [name for name in names if name != "group"]
    return f"no {word} is there" + (f"; of its other parts are written down: {join_names(left)}" if left else "")


def describe_surplus(member: GroupMember, after: int, most: int) -> MachineChange:
    """Return what becomes of a machine that is one too many; `after`: machines then, of `most`."""
    if member.state == SHUT:
        return MachineChange("delete", member.id, "it has shut down")
    why = f"max_instances is {most}" if after >= most else f"there is work for {after}"
    return MachineChange("delete", member.id, why)


def merge_changes(changes: Iterable[MachineChange]) -> list[MachineChange]:
    """Return them with one for each part of a fleet, at the place of its first."""
    found: dict[tuple[str, bool], MachineChange] = {}
    for each in changes:
        key = each.machine, each.part
        first = found.setdefault(key, each)
        whys = dict.fromkeys(filter(None, (first.why, each.why)))
        found[key] = replace(first, why="; ".join(whys))
    return list(found.values())


def describe_orphan(name: str) -> MachineChange:
    """Return what becomes of something that no apply recorded."""
    return MachineChange("delete", name, "no apply has written it down", part=True)


def describe_postponement(group: MachineGroup | None, expires: float | None) -> list[MachineChange]:
    """Return that a group is to be emptied at another time, where it is."""
    if group is None or expires is None:
        return []
    if group.expires is not None and abs(group.expires - expires) <= ROUNDED:
        return []
    return [
        MachineChange("update", "group", f"emptied {format_time(group.expires)} → {format_time(expires)}", part=True)
    ]


def describe_emptying(at: float | None) -> str:
    """Say when a group is emptied, or was: "to be emptied at 2026-12-01 18:00 UTC"."""
    if at is None:
        return "never emptied"
    return f"{'to be ' if at > time.time() else ''}emptied at {format_utc_time(at)}"


def join_names(names: Sequence[str]) -> str:
    """Return them as people read them: the first few, and how many others there are."""
    more = len(names) - _FEW
    return ", ".join(sorted(names)[:_FEW]) + (f" and {more} other{'s' * (more != 1)}" if more > 0 else "")


def format_time(at: float | None) -> str:
    """Return a time as people read it."""
    return "never" if at is None else format_utc_time(at)


def describe_larger_disk(wanted: CloudFleetPlan) -> list[str]:
    """Return what a plan says of a disk that is larger than was asked for."""
    if wanted.gibibytes - 1 << 30 < wanted.disk:
        return []
    return [f"disk: {format_size(wanted.disk)} is too small for the image: machines have {wanted.gibibytes} GiB"]


@contextmanager
def name_provider(name: str, region: str) -> Iterator[None]:
    """Say, in what is raised here, which provider of monkey.yaml it is about, and where that is."""
    try:
        yield
    except FleetError as exc:
        if repr(name) in exc.message:
            raise
        said = re.sub(r"\bin (?:this|the) region\b", f"in {region}", exc.message, count=1)
        raise FleetError(f"provider {name!r}: {said}", hint=exc.hint) from exc


def report_outcome(
    outcome: EngineOutcome, name: str, translate: Callable[[str], FleetError | None], say: Callable[[str], None]
) -> None:
    """Report the warnings of an operation on the fleet `name` to `say`. Raises FleetError for what failed."""
    for warning in outcome.warnings:
        say(f"warning: {warning}")
    if outcome.failures:
        raise make_failure(outcome.failures, name, translate)


def make_failure(
    failures: Sequence[ResourceFailure], name: str, translate: Callable[[str], FleetError | None]
) -> FleetError:
    """Return the error to raise where some of a fleet could not be made: by the first reason that we know."""
    told_by = [(each, translate(each.message) or errors.find_known_error(each.message)) for each in failures]
    known = [(each, error) for each, error in told_by if error is not None]
    if known:
        each, error = known[0]
        return FleetError(f"provider {name!r}: {each.name}: {error.message}", hint=error.hint)
    told = "\n".join(f"  {each.name}: {each.message}" for each in failures)
    return FleetError(
        f"provider {name!r}: {len(failures)} of its resources could not be changed:\n{told}",
        hint="what was done is known; apply goes on from there",
    )
