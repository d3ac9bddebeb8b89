"""Machines that are paid for: until when, at what cost at the worst, and whether that is allowed."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from monkey.apply.fleet_work import forecast_work
from monkey.errors import MonkeyError, PlanError, Problem, SpecError
from monkey.plan.cost import (
    FleetCost,
    compute_worst_cost,
    format_dollars,
    format_rentals,
    format_total_cost,
    sum_costs,
)
from monkey.spec.job.expires import Expiry, find_rental_mistake, format_utc_time
from monkey.spec.machines.fleet_name import find_provider_name
from monkey.spec.project.cloud import MIN_LIFETIME_SECONDS
from monkey.spec.yaml import document
from monkey.spec.yaml.mistakes import Mistake
from monkey.spec.yaml.units import format_duration

if TYPE_CHECKING:
    from monkey.apply.world.desired_state import LoadedSpec
    from monkey.apply.world.world import World
    from monkey.plan.change import Plan, SweepPlan
    from monkey.protocol.status.store_snapshot import StoreSnapshot, SweepView
    from monkey.spec.project.project import Project

#: Is asked whether machines may be rented at these costs, by fleets; raises MonkeyError where they may not.
Agree = Callable[[dict[str, FleetCost]], None]


def refuse_cost(costs: dict[str, FleetCost]) -> None:
    """Agree to nothing that costs. Raises MonkeyError."""
    raise MonkeyError(f"that would rent {format_rentals(costs)}", hint="--yes agrees to that")


def check_expires(project: Project, plan: Plan, wanted: Sequence[LoadedSpec]) -> None:
    """Raise SpecError, with their lines, for sweeps that would expire before they begin, or too late."""
    texts = {want.desired.name: want.text for want in wanted}
    problems: list[Problem] = []
    for sweep in plan.sweeps:
        if sweep.revises and sweep.jobs.unfinished and (mistake := _mistake(project, sweep, plan.at)):
            file = document.parse_document(texts[sweep.name], sweep.desired.source)
            problems.append(file.place(mistake))
    if problems:
        raise SpecError(problems)


def _mistake(project: Project, sweep: SweepPlan, now: float) -> Mistake | None:
    asked, until = sweep.desired.settings.expires, sweep.expires(now)
    if asked is None or until is None:
        return None
    if until <= now:
        return Mistake(("expires",), f"expected a time to come, found {asked.words()}", "write a later one, or 12h")
    for name in sweep.desired.settings.providers:
        cloud = project.providers[name].cloud
        if cloud is not None and (found := find_rental_mistake(asked, until - now, name, cloud.max_lifetime)):
            return found
    return None


def check_costs(plan: Plan, besides: Mapping[str, FleetCost] = MappingProxyType({})) -> None:
    """Raise PlanError where machines may cost more than monkey.yaml allows; `besides`: see `check_limits`."""
    check_limits({part.fleet: part.cost for part in plan.fleets if part.cost is not None}, besides)


def check_limits(costs: Mapping[str, FleetCost], besides: Mapping[str, FleetCost] = MappingProxyType({})) -> None:
    """Raise PlanError where these costs are above the limit of their provider, which all of its fleets share.

    `besides`: the costs of other fleets that are at work.
    """
    for fleet, cost in costs.items():
        name = find_provider_name(fleet)
        shared = {each: one for each, one in {**besides, **costs}.items() if find_provider_name(each) == name}
        total = sum_costs(shared.values())
        if cost.limit is not None and (total is None or total > cost.limit):
            words = cost.words()
            if len(shared) > 1:
                lot = "; ".join(f"{each}: {one.words()}" for each, one in sorted(shared.items()))
                words = f"{format_total_cost(shared.values())} for all of its fleets ({lot})"
            raise PlanError(
                f"provider {name!r}: expected at most {format_dollars(cost.limit)} (max_cost in monkey.yaml), "
                f"found {words}",
                hint="let the sweeps expire earlier (`expires:`), or allow fewer machines (`max_instances:`), or more "
                "(`max_cost:`)"
                + (f"; `monkey destroy --fleet {fleet}` ends those that keep their end" if cost.kept else ""),
            )


def find_costs_besides(
    project: Project, snapshot: StoreSnapshot | None, sweeps: Collection[str], fleets: Collection[str]
) -> dict[str, FleetCost]:
    """Return what other fleets may cost at worst that share a provider with these `fleets`, by sweeps that work there.

    `sweeps`: names of those that are not counted, as what they cost is known, or they end. Nor are those of strangers
    counted: they run on no machine.
    """
    named, ends = {find_provider_name(fleet) for fleet in fleets}, dict[str, float]()
    for view in snapshot.sweeps.values() if snapshot is not None else ():
        revision, until = view.state.revision, view.state.expires
        if view.state.name in sweeps or revision is None or until is None or not (view.active and view.unfinished):
            continue
        if view.state.is_foreign:
            continue
        for fleet in revision.settings.providers:
            if fleet not in fleets and find_provider_name(fleet) in named:
                ends[fleet] = max(until, ends.get(fleet, 0.0))
    clouds = {fleet: of.cloud for fleet in ends if (of := project.providers.get(fleet)) is not None and of.cloud}
    return {fleet: compute_worst_cost(cloud, ends[fleet], time.time()) for fleet, cloud in clouds.items()}


def extend_expiry(world: World, view: SweepView, asked: Expiry) -> float:
    """Return when a sweep is to expire that gets more time: that much after what it has, or after now.

    Raises MonkeyError where that is no later, or later than a provider allows.
    """
    now = time.time()
    assert view.state.revision is not None and view.state.expires is not None
    before = max(now, view.state.expires)
    until = asked.until(before)
    if until <= before:
        raise MonkeyError(
            f"sweep {view.state.name!r}: expected a time after {format_utc_time(before)}, found {asked.words()}",
            hint="`expires:` in the spec, applied anew, ends it earlier; `monkey cancel` ends it now",
        )
    for name in view.state.revision.settings.providers:
        provider = world.project.providers.get(name)
        if provider is not None and provider.cloud is not None:
            _hold(view.state.name, name, until, until - now, provider.cloud.max_lifetime)
    return until


def _hold(sweep: str, provider: str, until: float, left: float, most: float) -> None:
    """Raise MonkeyError where `left`, the seconds until then, are too many or too few where machines are rented."""
    if left > most:
        raise MonkeyError(
            f"sweep {sweep!r}: expected it to expire within {format_duration(most)} from now on provider "
            f"{provider!r}, found {format_utc_time(until)}",
            hint="ask for less time, or say `max_lifetime:` in monkey.yaml",
        )
    if left < MIN_LIFETIME_SECONDS:
        raise MonkeyError(
            f"sweep {sweep!r}: expected it to expire in {format_duration(MIN_LIFETIME_SECONDS)} or more on provider "
            f"{provider!r}, found {format_utc_time(until)}",
            hint="ask for more time: rented machines take minutes to boot",
        )


async def agree_to(
    world: World, view: SweepView, agree: Agree, until: float | None = None, again: Collection[str] = ()
) -> None:
    """Have it agreed to that machines are rented for a sweep that is opened again, or gets more time, before it is.

    `again`: jobs that have ended, and are tried again.

    Raises PlanError where they may cost more than is allowed, whatever `agree` raises, FleetError, StoreError.
    """
    assert view.state.revision is not None
    if view.over and until is None:
        return  # nothing of it runs before it is extended
    costs: dict[str, FleetCost] = {}
    rents: dict[str, FleetCost] = {}
    for name in view.state.revision.settings.providers:
        provider = world.project.providers.get(name)
        if provider is not None and provider.cloud is not None:
            told = await forecast_work(world, name, view, until, again)
            if told.cost is not None and told.after:
                costs[name] = told.cost
                rents |= {name: told.cost} if told.rents else {}
    snapshot = await world.reader().read() if costs else None
    check_limits(costs, find_costs_besides(world.project, snapshot, {view.state.name}, costs))
    if rents:
        agree(rents)
