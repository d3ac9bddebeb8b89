"""The fleets of a project: made from its providers, told of their work, asked what a plan means for their machines."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from monkey.apply.opening import store_url
from monkey.apply.stuck import name_of
from monkey.fleet.base import Finding, Fleet, Say, Work
from monkey.fleet.local import LocalFleet
from monkey.plan.change import FleetPlan, MachineChange, Plan
from monkey.protocol.snapshot import Snapshot, SweepView
from monkey.spec.provider import Provider
from monkey.store.base import Store

if TYPE_CHECKING:
    from monkey.apply.observe import World
    from monkey.spec.project import Project

#: Type of a provider to the module that makes its fleets: found by name, so that who has none of them imports none.
MODULES = {"ssh": "monkey_stacks.ssh_fleet"}

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


async def forgotten(world: World) -> dict[str, Fleet]:
    """Return fleets that have machines, and that monkey.yaml no longer names. Raises StoreError."""
    if world.store is None:
        return {}
    prefix = world.keys.machines
    names = {item.key.removeprefix(prefix).split("/")[0] for item in await world.store.list(prefix)}
    url, project = store_url(world.project), world.project.name
    found: dict[str, Fleet] = {}
    for name in sorted(names - world.fleets.keys()):
        fleet: Fleet = import_module(MODULES["ssh"]).make(name, Provider("ssh"), project, url, lambda: world.store)
        if await fleet.instances():
            found[name] = fleet
    return found


async def audit(world: World) -> list[tuple[str, Finding]]:
    """Return what is not as it was written down, by fleets; asks all machines. Raises FleetError, StoreError."""
    unnamed = await forgotten(world)
    found = [
        (
            name,
            Finding(instance.machine, "monkey.yaml no longer names its provider", f"`monkey destroy --fleet {name}`"),
        )
        for name, fleet in unnamed.items()
        for instance in await fleet.instances()
    ]
    fleets = [*world.fleets.values(), *unnamed.values()]
    busy = await _busy(world)
    asked = await asyncio.gather(*(fleet.audit(busy=fleet.name in busy) for fleet in fleets))
    return found + [(fleet.name, each) for fleet, of in zip(fleets, asked, strict=True) for each in of]


async def _busy(world: World) -> set[str]:
    """Return the fleets that have work. Raises StoreError."""
    if world.store is None:
        return set()
    snapshot = await world.reader().read()
    return {name for name in world.fleets if _with_work(snapshot, name)}


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
    told = await asyncio.gather(*(_forecast(world.fleet(part.fleet), part, snapshot) for part in plan.fleets))
    return plan.with_fleets(told)


async def _forecast(fleet: Fleet, part: FleetPlan, snapshot: Snapshot | None) -> FleetPlan:
    told = await fleet.preview(planned_work(part))
    return replace(
        part,
        type=fleet.type,
        before=told.before,
        after=told.after,
        inputs=told.inputs,
        machines=await _with_stops(fleet, told.changes, snapshot),
        notes=told.notes,
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


def planned_work(part: FleetPlan) -> Work:
    """Return what a fleet has to do once the plan is applied."""
    return Work(part.jobs, part.secrets, part.others)


async def recount(world: World, plan: Plan, part: FleetPlan) -> Work:
    """Return it as things are now; what others applied since the plan was made is counted. Raises StoreError."""
    mine = [sweep for sweep in plan.sweeps if part.fleet in sweep.desired.settings.providers]
    jobs = sum(sweep.jobs.unfinished for sweep in mine if sweep.active)
    # A sweep of the plan that leaves this fleet has not left yet: it is nobody else's all the same.
    planned = {sweep.name for sweep in plan.sweeps}
    others = [view for view in await _at_work(world, part.fleet) if view.state.name not in planned]
    names = frozenset(name for view in others for name in _secrets(view))
    return Work(jobs + sum(view.unfinished for view in others), part.secrets, names - part.secrets)


async def call(world: World, fleet: str, sweep: str, say: Say) -> None:
    """Have a fleet make of itself what its sweeps need, as they were applied; `sweep`'s secrets must be known here.

    Raises FleetError, StoreError.
    """
    views = await _at_work(world, fleet)
    asked = frozenset(name for view in views if view.state.name == sweep for name in _secrets(view))
    others = frozenset(name for view in views for name in _secrets(view)) - asked
    await world.fleet(fleet).converge(Work(sum(view.unfinished for view in views), asked, others), say)


async def _at_work(world: World, fleet: str) -> list[SweepView]:
    return _with_work(await world.reader().read(), fleet)


def _with_work(snapshot: Snapshot, fleet: str) -> list[SweepView]:
    views = snapshot.sweeps.values()
    revisions = ((view, view.state.revision) for view in views if view.state.active)
    return [view for view, of in revisions if of and fleet in of.settings.providers and view.unfinished]


def _secrets(view: SweepView) -> Collection[str]:
    return view.state.revision.settings.machine_secrets if view.state.revision else ()
