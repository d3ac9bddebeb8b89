"""What a fleet of rented machines may cost at the worst: by monkey.yaml, and by what there is already."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from monkey.fleet.fleet_records import FleetWork
from monkey.plan.cost import SECONDS_PER_HOUR, FleetCost, RetainedMachines, compute_worst_cost
from monkey.spec.project.cloud import CloudSettings
from monkey_stacks.cloud.scaling import ROUNDED, MachineGroup, ScalingPlan


@dataclass(frozen=True)
class RentalBounds:
    """What the state lets a fleet be: it was agreed to."""

    types: tuple[str, ...] = ()
    #: Machines at once; None where the state does not say.
    most: int | None = None
    #: When machines end that are made, seconds since the epoch; None where the state does not say.
    until: float | None = None


def limit_work(work: FleetWork, group: MachineGroup | None, agreed: RentalBounds) -> FleetWork:
    """Return the work until the time that machines have, where it is earlier only since a sweep is through."""
    end = _rented(group, agreed)
    if end is None or work.expires is None or work.through is None:
        return work
    return replace(work, expires=end) if work.expires < end <= work.through + ROUNDED else work


def _rented(group: MachineGroup | None, agreed: RentalBounds) -> float | None:
    if group is None or not group.desired:
        return None
    return group.expires if agreed.until is None else agreed.until


def forecast_cost(
    cloud: CloudSettings, work: FleetWork, group: MachineGroup | None, plan: ScalingPlan, agreed: RentalBounds
) -> FleetCost | None:
    """Return what a fleet may cost at the worst, where it is known until when it is to be rented."""
    if work.expires is None:
        return None
    return replace(
        compute_worst_cost(cloud, work.expires, time.time()),
        rented=_rented(group, agreed),
        kept=_kept(group, plan, max(work.expires, time.time())),
        dearer=_dearer(cloud, agreed),
    )


def _kept(group: MachineGroup | None, plan: ScalingPlan, until: float) -> RetainedMachines | None:
    staying = set(group.members).difference(plan.ending) if group is not None else set()
    ends = [each.ends for each in staying if each.ends is not None and each.ends - until > ROUNDED]
    return RetainedMachines(len(ends), sum(end - until for end in ends) / SECONDS_PER_HOUR, max(ends)) if ends else None


def _dearer(cloud: CloudSettings, agreed: RentalBounds) -> bool:
    """Is an hour of all machines dearer than it was agreed to be, at the prices of now?"""
    if not agreed.types:
        return False
    most, before = agreed.most or cloud.max_instances, replace(cloud, types=agreed.types).dearest
    if before is None or cloud.dearest is None:
        return cloud.max_instances > most or not set(cloud.types) <= set(agreed.types)
    return cloud.max_instances * cloud.dearest > most * before
