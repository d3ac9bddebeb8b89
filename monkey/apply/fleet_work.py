"""The work of a project's fleets, and what a plan means for their machines."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from monkey.fleet.fleet_port import Fleet, Say
from monkey.fleet.fleet_records import FleetForecast, FleetWork
from monkey.plan.change import FleetPlan, Plan
from monkey.plan.cost import MachineChange
from monkey.plan.work import (
    RemainingWork,
    count_by_image,
    count_by_resources,
    find_longest_grace,
    find_remaining_work,
    list_timeouts,
    make_remaining_work,
)
from monkey.protocol.status.store_snapshot import JobState, StoreSnapshot, SweepView

if TYPE_CHECKING:
    from monkey.apply.world.world import World


async def forecast_machines(plan: Plan, world: World, snapshot: StoreSnapshot | None) -> Plan:
    """Let the fleets say what the plan means for their machines; `snapshot`: what runs there, if anything ever did.

    Raises FleetError, StoreError.
    """
    works = [(world.fleet(part.fleet), part, make_planned_work(plan, part, plan.at)) for part in plan.fleets]
    told = await asyncio.gather(*(_forecast(fleet, part, work, snapshot) for fleet, part, work in works))
    return plan.with_fleets(told)


async def _forecast(fleet: Fleet, part: FleetPlan, work: FleetWork, snapshot: StoreSnapshot | None) -> FleetPlan:
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
    fleet: Fleet, changes: tuple[MachineChange, ...], snapshot: StoreSnapshot | None
) -> tuple[MachineChange, ...]:
    """Count the jobs that run on machines which go, by the heartbeats of the agents there."""
    if snapshot is None or not any(change.ends for change in changes):
        return changes
    agents = {instance.machine: instance.agents for instance in await fleet.instances()}
    running: Counter[str] = Counter()
    for agent in snapshot.alive(fleet.name):
        running[agent.machine] += agent.jobs
    return tuple(
        replace(change, stops=sum(running[name] for name in agents.get(change.machine, ()))) if change.ends else change
        for change in changes
    )


def make_planned_work(plan: Plan, part: FleetPlan, now: float) -> FleetWork:
    """Return what a fleet has to do once the plan is applied, at `now` (seconds since the epoch)."""
    ends = plan.expires(part, now), plan.through(part, now)
    return FleetWork(
        *(part.jobs, part.secrets, part.others, ends[0], part.asked, ends[1], part.timeouts, part.grace, part.images),
    )


async def recount_work(world: World, plan: Plan, part: FleetPlan, now: float) -> FleetWork:
    """Return it as things are; what others applied since the plan was made is counted. Raises StoreError."""
    mine = [sweep for sweep in plan.accepted if part.fleet in sweep.desired.settings.providers]
    lots = [(find_remaining_work(sweep), sweep.expires(now)) for sweep in mine]
    # A sweep of the plan that leaves this fleet has not left yet: it is nobody else's all the same.
    planned = {sweep.name for sweep in plan.accepted}
    others = [view for view in await _at_work(world, part.fleet) if view.state.name not in planned]
    names = frozenset(name for view in others for name in _secrets(view))
    return _work([*lots, *map(_lot, others)], part.secrets, names - part.secrets)


async def forecast_work(
    world: World, fleet: str, view: SweepView, until: float | None, again: Collection[str] = ()
) -> FleetForecast:
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
    return where in (JobState.SUCCEEDED, JobState.FAILED) or (where is JobState.STOPPED and view.met(job) is not None)


async def call_for_agents(world: World, fleet: str, sweep: str, say: Say) -> None:
    """Have a fleet make of itself what its sweeps need, as they were applied; `sweep`'s secrets must be known here.

    Raises FleetError, StoreError.
    """
    views = await _at_work(world, fleet)
    asked = frozenset(name for view in views if view.state.name == sweep for name in _secrets(view))
    others = frozenset(name for view in views for name in _secrets(view)) - asked
    await world.fleet(fleet).converge(_work([*map(_lot, views)], asked, others), say, bars=world.bars)


def sum_unfinished_work(snapshot: StoreSnapshot, fleet: str) -> FleetWork:
    """Return what is left to do for a fleet, whose machines keep the secrets that they have."""
    views = list_unfinished_sweeps(snapshot, fleet)
    return _work([*map(_lot, views)], frozenset(), frozenset(name for view in views for name in _secrets(view)))


#: What is left of a sweep, and when it expires.
_Lot = tuple[RemainingWork, float | None]


def _work(lots: Sequence[_Lot], secrets: frozenset[str], others: frozenset[str]) -> FleetWork:
    jobs = count_by_resources(lot for lot, _ in lots)
    ends = [expires for lot, expires in lots if lot.count and expires is not None]
    left = [lot for lot, _ in lots]
    return FleetWork(
        sum(count for _, count in jobs),
        secrets,
        others,
        max(ends, default=None),
        jobs,
        timeouts=list_timeouts(left),
        grace=find_longest_grace(left),
        images=count_by_image(left),
    )


def _lot(view: SweepView, jobs: Sequence[str] | None = None, until: float | None = None) -> _Lot:
    """Return what is left of a sweep; or these jobs, until then."""
    assert view.state.revision is not None
    left = view.left if jobs is None else jobs
    expires = view.state.expires if until is None else until
    of = view.state.revision
    return make_remaining_work(of.recipe, of.settings, len(left), lambda: left), expires


async def _at_work(world: World, fleet: str) -> list[SweepView]:
    return list_unfinished_sweeps(await world.reader().read(), fleet)


def list_unfinished_sweeps(snapshot: StoreSnapshot, fleet: str) -> list[SweepView]:
    """Return the sweeps of which something is left to do, by this fleet among others; none that a stranger applied."""
    views = snapshot.sweeps.values()
    revisions = ((view, view.state.revision) for view in views if view.active)
    mine = [view for view, of in revisions if of and fleet in of.settings.providers and view.unfinished]
    return [view for view in mine if not view.state.is_foreign]


def _secrets(view: SweepView) -> Collection[str]:
    return view.state.revision.settings.machine_secrets if view.state.revision else ()
