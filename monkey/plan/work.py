"""What is left to do for every fleet. A job that several sweeps have is run once, and counted once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from monkey.plan.change import FleetPlan, SweepPlan
from monkey.plan.observed import Observed, ObservedSweep
from monkey.plan.states import reopened
from monkey.spec.job.recipe import Resources


@dataclass(frozen=True)
class Lot:
    """What is left to be run of one sweep."""

    #: What each of its jobs asks for.
    resources: Resources
    #: How many jobs, and which: they are looked at only where another sweep may have the same.
    count: int
    jobs: Callable[[], Iterable[str]]


def asked(lots: Iterable[Lot]) -> tuple[tuple[Resources, int], ...]:
    """Count jobs by what they ask for; one of several sweeps once, by what asks for most."""
    some = sorted((lot for lot in lots if lot.count), key=_demand, reverse=True)
    if len(some) == 1:
        return ((some[0].resources, some[0].count),)
    counted, known = Counter[Resources](), set[str]()
    for lot in some:
        before = len(known)
        known.update(lot.jobs())
        counted[lot.resources] += len(known) - before
    return tuple((+counted).items())


def _demand(lot: Lot) -> tuple[float, ...]:
    return lot.resources.gpus, lot.resources.cpus, lot.resources.memory


def left_of(sweep: SweepPlan) -> Lot:
    """Return what is left of a sweep once the plan is applied; nothing where it is held."""
    count = sweep.jobs.unfinished if sweep.active else 0
    return Lot(sweep.desired.settings.resources, count, partial(_unfinished, sweep))


def _unfinished(sweep: SweepPlan) -> Iterator[str]:
    ids, seen = sweep.desired.table.ids, sweep.observed
    for rows in (sweep.jobs.new, *(group.rows for group in sweep.jobs.stale)):
        yield from (ids[row] for row in rows)
    if seen is None or seen.applied is None:
        return
    known = set(seen.applied.table.ids)
    known -= seen.stopped.keys() - reopened(seen, sweep.desired.settings.stop_when)
    known -= sweep.adopted.keys() | seen.succeeded | seen.failed
    yield from (ids[row] for row in sweep.jobs.kept if ids[row] in known)


def _observed(seen: ObservedSweep) -> Iterator[str]:
    ids = seen.applied.table.ids if seen.applied else ()
    yield from (job for job in ids if not (job in seen.succeeded or job in seen.failed or job in seen.stopped))


def fleet_plans(sweeps: Sequence[SweepPlan], observed: Observed) -> tuple[FleetPlan, ...]:
    """Sum up what is left to do for every fleet that a desired sweep names, and who is there to do it."""
    lots: defaultdict[str, list[Lot]] = defaultdict(list)
    secrets: defaultdict[str, set[str]] = defaultdict(set)
    others: defaultdict[str, set[str]] = defaultdict(set)
    ends: defaultdict[str, list[float]] = defaultdict(list)
    for sweep in sweeps:
        lot = left_of(sweep)
        for fleet in sweep.desired.settings.providers:
            lots[fleet].append(lot)
            secrets[fleet].update(sweep.desired.settings.machine_secrets if lot.count else ())
    through: defaultdict[str, list[float]] = defaultdict(list)
    names = {sweep.name for sweep in sweeps}
    for name, seen in observed.sweeps.items():
        if name in names or not seen.active or not seen.applied:
            continue
        here = lots.keys() & set(seen.applied.settings.providers)
        for fleet in here:
            (ends if seen.unfinished else through)[fleet] += [seen.expires] if seen.expires is not None else []
        if seen.unfinished:
            lot = Lot(seen.applied.settings.resources, seen.unfinished, partial(_observed, seen))
            for fleet in here:
                lots[fleet].append(lot)
                others[fleet].update(seen.applied.settings.machine_secrets)
    counted = {fleet: asked(of) for fleet, of in lots.items()}
    return tuple(
        FleetPlan(
            fleet,
            sum(jobs for _, jobs in of),
            observed.agents.get(fleet, 0),
            secrets=frozenset(secrets[fleet]),
            others=frozenset(others[fleet] - secrets[fleet]),
            expires=max(ends[fleet], default=None),
            through=max(through[fleet], default=None),
            asked=of,
        )
        for fleet, of in counted.items()
    )
