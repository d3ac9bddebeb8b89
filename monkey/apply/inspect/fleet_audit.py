"""The audit of fleets: what providers have, compared with what is written down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from monkey.apply.fleet_work import list_unfinished_sweeps
from monkey.apply.world.project_store import locate_project_store
from monkey.apply.world.world import World
from monkey.errors import CorruptObject, FleetError
from monkey.fleet.fleet_port import Auditable, Fleet, Rented
from monkey.fleet.fleet_records import AuditFinding, FleetWork, ForeignResource, TaggedResource
from monkey.plan.change import FleetPlan, Plan
from monkey.plan.cost import MachineChange, format_dollars
from monkey.spec.machines.fleet_name import SEPARATOR

if TYPE_CHECKING:
    from monkey.protocol.status.store_snapshot import StoreSnapshot

#: What finds out of which type a fleet is that monkey.yaml does not name.
_FORGOTTEN = "monkey_stacks.unlisted_fleets"


async def open_derived_fleets(world: World, written: Iterable[str] | None = None) -> list[Fleet]:
    """Open the fleets of machines that specs chose, if they ever had some: `world.fleets` lists them from here on.

    Their names tell what they are, so it does not matter whether any spec still asks for them. `written`: what
    `list_written_fleets` returned before. Raises StoreError.
    """
    names = await list_written_fleets(world) if written is None else written
    return [world.fleets[name] for name in names if SEPARATOR in name and name in world.fleets]


async def find_forgotten_fleets(world: World, torn: dict[str, CorruptObject] | None = None) -> dict[str, Fleet]:
    """Return fleets that have machines, and that monkey.yaml no longer names.

    Raises StoreError; and CorruptObject for a state that cannot be read, unless `torn` takes it, by its fleet.
    """
    url, project = locate_project_store(world.project), world.project.name
    found: dict[str, Fleet] = {}
    for name in _drop_named(world, await list_written_fleets(world)):
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


async def warn_of_unlisted_fleets(world: World, written: Iterable[str]) -> tuple[str, ...]:
    """Return warnings of machines whose provider monkey.yaml no longer names; asks no machine.

    `written`: see `list_written_fleets`. Raises StoreError.
    """
    found, project = [], world.project.name
    for name in _drop_named(world, written):
        if await import_module(_FORGOTTEN).has_remains(name, project, lambda: world.store):
            what = "monkey.yaml no longer names this provider, and it has machines"
            found.append(f"`monkey destroy --fleet {name}`: {what}")
    return tuple(found)


async def plan_unwanted_fleets(
    world: World, plan: Plan, snapshot: StoreSnapshot | None, written: Iterable[str]
) -> Plan:
    """Return the plan with what is left of fleets whose machines specs chose, and that none asks for any more.

    The plan is one of all specs. An apply removes such a fleet once it has no machines: they end by themselves when
    they have no work. `written`: see `list_written_fleets`. Raises StoreError.
    """
    accepted = {sweep.name for sweep in plan.accepted}
    named = {fleet for sweep in plan.sweeps for fleet in sweep.desired.settings.providers}
    parts, told = list[FleetPlan](), list[str]()
    for fleet in await open_derived_fleets(world, written):
        views = list_unfinished_sweeps(snapshot, fleet.name) if snapshot is not None else []
        if fleet.name in named or any(view.state.name not in accepted for view in views):
            continue
        if not await import_module(_FORGOTTEN).has_remains(fleet.name, world.project.name, lambda: world.store):
            continue
        try:
            machines = (await fleet.preview(FleetWork(0))).before
        except (FleetError, CorruptObject) as exc:
            what = "no spec asks for its machines any more, and whether it has some is not known"
            told.append(f"{fleet.name}: {what}: {exc.message}")
            continue
        if machines:
            what = f"no spec asks for its {machines} machine{'s' * (machines != 1)} any more"
            told.append(f"{fleet.name}: {what}; they end when they have no work, and a later apply removes the rest")
            continue
        change = MachineChange("delete", "group", "no spec asks for these machines any more", part=True)
        parts.append(FleetPlan(fleet.name, 0, 0, fleet.type, 0, 0, machines=(change,), unwanted=True))
    return replace(plan, fleets=(*plan.fleets, *parts), warnings=(*plan.warnings, *told))


async def remove_unwanted_fleet(world: World, name: str, say: Callable[[str, str], None]) -> None:
    """Remove what is left of a fleet, unless a sweep asks for it by now, or it has machines. Raises StoreError.

    What cannot be removed is reported to `say`, as it costs nothing, and the next plan shows it again.
    """
    fleet, snapshot = world.fleet(name), await world.reader().read()
    if not isinstance(fleet, Rented):
        return
    if needing := list_unfinished_sweeps(snapshot, name):
        say(name, f"stays: sweep {needing[0].state.name} asks for it again")
        return
    try:
        await fleet.destroy(partial(say, name), idle=True)
    except (FleetError, CorruptObject) as exc:
        say(name, f"warning: {exc.message.removeprefix(f'provider {name!r}: ')}")


def _drop_named(world: World, written: Iterable[str]) -> list[str]:
    return [name for name in written if name not in world.fleets]


async def list_written_fleets(world: World) -> list[str]:
    """Return the names of the fleets of whose machines something was written. Raises StoreError."""
    if world.store is None:
        return []
    prefix = world.keys.machines
    return sorted({item.key.removeprefix(prefix).split("/")[0] for item in await world.store.list(prefix)})


async def audit_fleets(world: World) -> list[tuple[str, AuditFinding]]:
    """Return what is not as it was written down, by fleets; asks all machines. Raises FleetError, StoreError."""
    torn: dict[str, CorruptObject] = {}
    await open_derived_fleets(world)
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
    await open_derived_fleets(world)
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
