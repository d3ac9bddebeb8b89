"""The audit of fleets: what providers have, compared with what is written down."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from importlib import import_module

from monkey.apply.fleet_work import list_unfinished_sweeps
from monkey.apply.world.project_store import locate_project_store
from monkey.apply.world.world import World
from monkey.errors import CorruptObject
from monkey.fleet.fleet_port import Auditable, Fleet, Rented
from monkey.fleet.fleet_records import AuditFinding, ForeignResource, TaggedResource
from monkey.plan.cost import format_dollars

#: What finds out of which type a fleet is that monkey.yaml does not name.
_FORGOTTEN = "monkey_stacks.unlisted_fleets"


async def find_forgotten_fleets(world: World, torn: dict[str, CorruptObject] | None = None) -> dict[str, Fleet]:
    """Return fleets that have machines, and that monkey.yaml no longer names.

    Raises StoreError; and CorruptObject for a state that cannot be read, unless `torn` takes it, by its fleet.
    """
    url, project = locate_project_store(world.project), world.project.name
    found: dict[str, Fleet] = {}
    for name in await _unnamed(world):
        try:
            fleet: Fleet | None = await import_module(_FORGOTTEN).open_unlisted_fleet(
                name, project, url, lambda: world.store, lambda: world.signers
            )
        except CorruptObject as exc:
            if torn is None:
                raise
            torn[name] = exc
            continue
        if fleet is not None:
            found[name] = fleet
    return found


async def warn_of_unlisted_fleets(world: World) -> tuple[str, ...]:
    """Return warnings of machines whose provider monkey.yaml no longer names; asks no machine. Raises StoreError."""
    found, project = [], world.project.name
    for name in await _unnamed(world):
        if await import_module(_FORGOTTEN).has_remains(name, project, lambda: world.store):
            what = "monkey.yaml no longer names this provider, and it has machines"
            found.append(f"`monkey destroy --fleet {name}`: {what}")
    return tuple(found)


async def _unnamed(world: World) -> list[str]:
    """Return the names under which something was written of machines, and that no provider has. Raises StoreError."""
    if world.store is None:
        return []
    prefix = world.keys.machines
    names = {item.key.removeprefix(prefix).split("/")[0] for item in await world.store.list(prefix)}
    return sorted(names - world.fleets.keys())


async def audit_fleets(world: World) -> list[tuple[str, AuditFinding]]:
    """Return what is not as it was written down, by fleets; asks all machines. Raises FleetError, StoreError."""
    torn: dict[str, CorruptObject] = {}
    unnamed = await find_forgotten_fleets(world, torn)
    found = [(name, _torn(exc)) for name, exc in torn.items()]
    found += [
        (
            name,
            AuditFinding(
                instance.machine, "monkey.yaml no longer names its provider", f"`monkey destroy --fleet {name}`"
            ),
        )
        for name, fleet in unnamed.items()
        for instance in await fleet.instances()
    ]
    fleets = [fleet for fleet in [*world.fleets.values(), *unnamed.values()] if isinstance(fleet, Auditable)]
    busy = await _busy(world)
    asked = await asyncio.gather(*(_audited(fleet, fleet.name in busy) for fleet in fleets))
    return found + [(fleet.name, each) for fleet, of in zip(fleets, asked, strict=True) for each in of]


async def _audited(fleet: Auditable, busy: bool) -> tuple[AuditFinding, ...]:
    try:
        return await fleet.audit(busy=busy)
    except CorruptObject as exc:
        return (_torn(exc),)


def _torn(exc: CorruptObject) -> AuditFinding:
    return AuditFinding("state", exc.message, exc.hint or "bring back an older version of it")


async def list_tagged_resources(world: World) -> list[tuple[str, TaggedResource]]:
    """Return what clouds have of ours, by fleets, those that monkey.yaml no longer names included; each thing once.

    Raises FleetError, StoreError.
    """
    known = [*world.fleets.values(), *(await find_forgotten_fleets(world, {})).values()]
    fleets = [fleet for fleet in known if isinstance(fleet, Rented)]
    asked = await asyncio.gather(*(fleet.tagged_resources() for fleet in fleets))
    held = [(fleet.name, each) for fleet, of in zip(fleets, asked, strict=True) for each in of]
    once: dict[tuple[str, str, str], tuple[str, TaggedResource]] = {}
    for name, each in sorted(held, key=lambda item: item[1].of is not None):  # what is a fleet's own is no stranger's
        once.setdefault((each.region, each.kind, each.id), (name, each))
    return list(once.values())


def find_foreign_resources(held: Iterable[tuple[str, TaggedResource]]) -> list[tuple[str, AuditFinding]]:
    """Return what is tagged as the project's and is of none of its fleets here, a finding for each stack."""
    lots: dict[tuple[str, str, ForeignResource], list[TaggedResource]] = {}
    for name, each in held:
        if each.of is not None:
            lots.setdefault((name, each.region, each.of), []).append(each)
    found = []
    for (name, region, of), lot in lots.items():
        cost = format_dollars(sum(each.price or 0.0 for each in lot))
        of_unknown = ", and what nobody knows the price of" if any(each.price is None for each in lot) else ""
        things = f"{len(lot)} thing{'s' * (len(lot) != 1)} in {region} for {cost} an hour{of_unknown}"
        machine = f"stack {of.stack}" if of.stack else "no stack"
        found.append((of.provider or name, AuditFinding(machine, f"{things}: {of.text}", of.hint)))
    return found


async def _busy(world: World) -> set[str]:
    """Return the fleets that have work. Raises StoreError."""
    if world.store is None:
        return set()
    snapshot = await world.reader().read()
    return {name for name in world.fleets if list_unfinished_sweeps(snapshot, name)}
