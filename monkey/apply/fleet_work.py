"""The fleets of a project: made from its providers, told of their work, asked what a plan means for their machines."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from monkey.apply.watch.stuck_sweeps import name_of
from monkey.apply.world.project_store import store_url
from monkey.errors import Corrupt
from monkey.fleet.fleet_port import Finding, Fleet, Forecast, Holding, Say, Stranger, Work
from monkey.fleet.local_fleet import LocalFleet
from monkey.plan.change import FleetPlan, MachineChange, Plan
from monkey.plan.cost import dollars
from monkey.plan.work import Lot, asked, left_of
from monkey.protocol.status.store_snapshot import Snapshot, State, SweepView
from monkey.store.store_port import Store

if TYPE_CHECKING:
    from monkey.apply.world.observe import World
    from monkey.spec.project.project import Project

#: Type of a provider to the module that makes its fleets: found by name, so that who has none of them imports none.
MODULES = {"ssh": "monkey_stacks.ssh.fleet", "aws": "monkey_stacks.aws.fleet", "gcp": "monkey_stacks.gcp.fleet"}
#: What finds out of which type a fleet is that monkey.yaml does not name.
_FORGOTTEN = "monkey_stacks.unlisted_fleets"

#: Returns the store, once there is one.
Opened = Callable[[], Store | None]


def fleets(project: Project, store_url: str, store: Opened) -> dict[str, Fleet]:
    """Return the fleet of every provider of the project."""
    return {name: _fleet(project, store_url, store, name) for name in project.providers}


def _fleet(project: Project, store_url: str, store: Opened, name: str) -> Fleet:
    of = project.providers[name]
    if of.type in MODULES:
        made: Fleet = import_module(MODULES[of.type]).make(name, of, project.name, store_url, store)
        return made
    return LocalFleet(store_url, project.name, name, of.max_slots, of.idle_timeout, of.cache_size)


async def forgotten(world: World, torn: dict[str, Corrupt] | None = None) -> dict[str, Fleet]:
    """Return fleets that have machines, and that monkey.yaml no longer names.

    Raises StoreError; and Corrupt for a state that cannot be read, unless `torn` takes it, by its fleet.
    """
    url, project = store_url(world.project), world.project.name
    found: dict[str, Fleet] = {}
    for name in await _unnamed(world):
        try:
            fleet: Fleet | None = await import_module(_FORGOTTEN).fleet(name, project, url, lambda: world.store)
        except Corrupt as exc:
            if torn is None:
                raise
            torn[name] = exc
            continue
        if fleet is not None:
            found[name] = fleet
    return found


async def left_behind(world: World) -> tuple[str, ...]:
    """Return warnings of machines whose provider monkey.yaml no longer names; asks no machine. Raises StoreError."""
    found, project = [], world.project.name
    for name in await _unnamed(world):
        if await import_module(_FORGOTTEN).remains(name, project, lambda: world.store):
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


async def audit(world: World) -> list[tuple[str, Finding]]:
    """Return what is not as it was written down, by fleets; asks all machines. Raises FleetError, StoreError."""
    torn: dict[str, Corrupt] = {}
    unnamed = await forgotten(world, torn)
    found = [(name, _torn(exc)) for name, exc in torn.items()]
    found += [
        (
            name,
            Finding(instance.machine, "monkey.yaml no longer names its provider", f"`monkey destroy --fleet {name}`"),
        )
        for name, fleet in unnamed.items()
        for instance in await fleet.instances()
    ]
    fleets = [*world.fleets.values(), *unnamed.values()]
    busy = await _busy(world)
    asked = await asyncio.gather(*(_audited(fleet, fleet.name in busy) for fleet in fleets))
    return found + [(fleet.name, each) for fleet, of in zip(fleets, asked, strict=True) for each in of]


async def _audited(fleet: Fleet, busy: bool) -> tuple[Finding, ...]:
    try:
        return await fleet.audit(busy=busy)
    except Corrupt as exc:
        return (_torn(exc),)


def _torn(exc: Corrupt) -> Finding:
    return Finding("state", exc.message, exc.hint or "bring back an older version of it")


async def holdings(world: World) -> list[tuple[str, Holding]]:
    """Return what clouds have of ours, by fleets, those that monkey.yaml no longer names included; each thing once.

    Raises FleetError, StoreError.
    """
    fleets = [*world.fleets.values(), *(await forgotten(world, {})).values()]
    asked = await asyncio.gather(*(fleet.holdings() for fleet in fleets))
    held = [(fleet.name, each) for fleet, of in zip(fleets, asked, strict=True) for each in of]
    once: dict[tuple[str, str, str], tuple[str, Holding]] = {}
    for name, each in sorted(held, key=lambda item: item[1].of is not None):  # what is a fleet's own is no stranger's
        once.setdefault((each.region, each.kind, each.id), (name, each))
    return list(once.values())


def strangers(held: Iterable[tuple[str, Holding]]) -> list[tuple[str, Finding]]:
    """Return what is tagged as the project's and is of none of its fleets here, a finding for each stack."""
    lots: dict[tuple[str, str, Stranger], list[Holding]] = {}
    for name, each in held:
        if each.of is not None:
            lots.setdefault((name, each.region, each.of), []).append(each)
    found = []
    for (name, region, of), lot in lots.items():
        cost = dollars(sum(each.price or 0.0 for each in lot))
        of_unknown = ", and what nobody knows the price of" if any(each.price is None for each in lot) else ""
        things = f"{len(lot)} thing{'s' * (len(lot) != 1)} in {region} for {cost} an hour{of_unknown}"
        machine = f"stack {of.stack}" if of.stack else "no stack"
        found.append((of.provider or name, Finding(machine, f"{things}: {of.text}", of.hint)))
    return found


async def _busy(world: World) -> set[str]:
    """Return the fleets that have work. Raises StoreError."""
    if world.store is None:
        return set()
    snapshot = await world.reader().read()
    return {name for name in world.fleets if with_work(snapshot, name)}


async def living(fleet: Fleet, snapshot: Snapshot | None) -> int:
    """Say how many agents of a fleet live: by what this machine sees, else by their heartbeats."""
    here = await fleet.living()
    if here is not None:
        return here
    return len(snapshot.alive(fleet.name)) if snapshot is not None else 0


async def with_machines(plan: Plan, world: World, snapshot: Snapshot | None) -> Plan:
    """Let the fleets say what the plan means for their machines; `snapshot`: what runs there, if anything ever did.

    Raises FleetError, StoreError.
    """
    works = [(world.fleet(part.fleet), part, planned_work(plan, part, plan.at)) for part in plan.fleets]
    told = await asyncio.gather(*(_forecast(fleet, part, work, snapshot) for fleet, part, work in works))
    return plan.with_fleets(told)


async def _forecast(fleet: Fleet, part: FleetPlan, work: Work, snapshot: Snapshot | None) -> FleetPlan:
    told = await fleet.preview(work)
    return replace(
        part,
        type=fleet.type,
        before=told.before,
        after=told.after,
        inputs=told.inputs,
        machines=await _with_stops(fleet, told.changes, snapshot),
        notes=told.notes,
        cost=told.cost,
    )


async def _with_stops(
    fleet: Fleet, changes: tuple[MachineChange, ...], snapshot: Snapshot | None
) -> tuple[MachineChange, ...]:
    """Count the jobs that run on machines which go, by the heartbeats of the agents there."""
    if snapshot is None or not any(change.ends for change in changes):
        return changes
    agents = {instance.machine: instance.agents for instance in await fleet.instances()}
    running: Counter[str] = Counter()
    for agent in snapshot.alive(fleet.name):
        running[name_of(agent)] += agent.jobs
    return tuple(
        replace(change, stops=sum(running[name] for name in agents.get(change.machine, ()))) if change.ends else change
        for change in changes
    )


def planned_work(plan: Plan, part: FleetPlan, now: float) -> Work:
    """Return what a fleet has to do once the plan is applied, at `now` (seconds since the epoch)."""
    return Work(part.jobs, part.secrets, part.others, plan.expires(part, now), part.asked, plan.through(part, now))


async def recount(world: World, plan: Plan, part: FleetPlan, now: float) -> Work:
    """Return it as things are; what others applied since the plan was made is counted. Raises StoreError."""
    mine = [sweep for sweep in plan.sweeps if part.fleet in sweep.desired.settings.providers]
    lots = [(left_of(sweep), sweep.expires(now)) for sweep in mine]
    # A sweep of the plan that leaves this fleet has not left yet: it is nobody else's all the same.
    planned = {sweep.name for sweep in plan.sweeps}
    others = [view for view in await _at_work(world, part.fleet) if view.state.name not in planned]
    names = frozenset(name for view in others for name in _secrets(view))
    return _work([*lots, *map(_lot, others)], part.secrets, names - part.secrets)


async def foresee(
    world: World, fleet: str, view: SweepView, until: float | None, again: Collection[str] = ()
) -> Forecast:
    """Say what it would take to work on a sweep until then (None: as long as it has), besides the fleet's others.

    Of jobs that failed or met a condition, those of `again` are tried again.

    Raises FleetError, StoreError.
    """
    others = [other for other in await _at_work(world, fleet) if other.state.name != view.state.name]
    mine = frozenset(_secrets(view))
    names = frozenset(name for other in others for name in _secrets(other))
    left = [job for job in view.ids if job in again or not _ended(view, job)]
    lots = [_lot(view, left, until), *map(_lot, others)]
    return await world.fleet(fleet).preview(_work(lots, mine, names - mine))


def _ended(view: SweepView, job: str) -> bool:
    where = view.where(job)
    return where in (State.SUCCEEDED, State.FAILED) or (where is State.STOPPED and view.met(job) is not None)


async def call(world: World, fleet: str, sweep: str, say: Say) -> None:
    """Have a fleet make of itself what its sweeps need, as they were applied; `sweep`'s secrets must be known here.

    Raises FleetError, StoreError.
    """
    views = await _at_work(world, fleet)
    asked = frozenset(name for view in views if view.state.name == sweep for name in _secrets(view))
    others = frozenset(name for view in views for name in _secrets(view)) - asked
    await world.fleet(fleet).converge(_work([*map(_lot, views)], asked, others), say)


def work_left(views: Iterable[SweepView]) -> Work:
    """Return what is left to do of sweeps that are at work, without their secrets."""
    return _work([*map(_lot, views)], frozenset(), frozenset())


#: What is left of a sweep, and when it expires.
_Lot = tuple[Lot, float | None]


def _work(lots: Sequence[_Lot], secrets: frozenset[str], others: frozenset[str]) -> Work:
    jobs = asked(lot for lot, _ in lots)
    ends = [expires for lot, expires in lots if lot.count and expires is not None]
    return Work(sum(count for _, count in jobs), secrets, others, max(ends, default=None), jobs)


def _lot(view: SweepView, jobs: Sequence[str] | None = None, until: float | None = None) -> _Lot:
    """Return what is left of a sweep; or these jobs, until then."""
    assert view.state.revision is not None
    left = view.left if jobs is None else jobs
    expires = view.state.expires if until is None else until
    return Lot(view.state.revision.settings.resources, len(left), lambda: left), expires


async def _at_work(world: World, fleet: str) -> list[SweepView]:
    return with_work(await world.reader().read(), fleet)


def with_work(snapshot: Snapshot, fleet: str) -> list[SweepView]:
    """Return the sweeps of which something is left to do, by this fleet among others."""
    views = snapshot.sweeps.values()
    revisions = ((view, view.state.revision) for view in views if view.active)
    return [view for view, of in revisions if of and fleet in of.settings.providers and view.unfinished]


def _secrets(view: SweepView) -> Collection[str]:
    return view.state.revision.settings.machine_secrets if view.state.revision else ()
