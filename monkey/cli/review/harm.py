"""What needs consent in a plan: it runs finished jobs again, stops running ones, or spends money."""

from __future__ import annotations

from monkey.plan.change import FleetPlan, Plan, SweepPlan
from monkey.plan.cost import format_total_cost


def find_harm(plan: Plan) -> dict[str, list[str]]:
    """Return, for each sweep that needs a person's consent, what applying it would do, in words.

    A sweep that has no such change itself needs consent if its machines do: a fleet is applied for all its sweeps.
    """
    of_fleets = {fleet.fleet: _describe_fleet(fleet) for fleet in plan.fleets}
    found = {}
    for sweep in plan.sweeps:
        harm = _describe_sweep(sweep)
        for name in sweep.desired.settings.providers:
            harm += of_fleets.get(name, [])
        if harm:
            found[sweep.name] = harm
    return found | {gone.name: ["is cancelled, as its spec is gone"] for gone in plan.gone if gone.pruned}


def _describe_sweep(sweep: SweepPlan) -> list[str]:
    seen, harm = sweep.observed, []
    if sweep.redone:
        harm.append(f"runs {_count(sweep.redone, 'finished job')} again")
    if sweep.dropped:
        harm.append(f"gives up {_count(len(sweep.dropped), 'adopted result')}")
    if sweep.released:
        harm.append(f"stops {_count(sweep.released, 'running job')}")
    # A goal that was reached ends a sweep, too: to open that again is what a new revision is for.
    if sweep.revises and seen is not None and seen.cancelled is not None and not seen.goal:
        harm.append("opens a cancelled sweep again")
    return harm


def _describe_fleet(fleet: FleetPlan) -> list[str]:
    harm = []
    if fleet.rents:
        cost = f" for {format_total_cost([fleet.cost])}" if fleet.cost else ""
        harm.append(f"rents machines of {fleet.fleet}{cost}")
    if stops := sum(change.stops for change in fleet.machines):
        harm.append(f"takes machines of {fleet.fleet} away from {_count(stops, 'running job')}")
    return harm


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
