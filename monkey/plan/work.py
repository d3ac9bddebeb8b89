"""What is left to do for every fleet. A job that several sweeps have is run once, and counted once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from monkey.plan.change import FleetPlan, SweepPlan
from monkey.plan.jobs.states import find_reopened_jobs
from monkey.plan.observed import ObservedProject, ObservedSweep
from monkey.spec.job.recipe import JobResources


@dataclass(frozen=True)
class RemainingWork:
    """What is left to be run of one sweep."""

    #: What each of its jobs asks for.
    resources: JobResources
    #: How many jobs, and which: they are looked at only where another sweep may have the same.
    count: int
    jobs: Callable[[], Iterable[str]]


def count_by_resources(lots: Iterable[RemainingWork]) -> tuple[tuple[JobResources, int], ...]:
    """Count jobs by what they ask for; one of several sweeps once, by what asks for most."""
    some = sorted((lot for lot in lots if lot.count), key=_rank_resources, reverse=True)
    if len(some) == 1:
        return ((some[0].resources, some[0].count),)
    counted, known = Counter[JobResources](), set[str]()
    for lot in some:
        before = len(known)
        known.update(lot.jobs())
        counted[lot.resources] += len(known) - before
    return tuple((+counted).items())


def _rank_resources(lot: RemainingWork) -> tuple[float, ...]:
    return lot.resources.gpus, lot.resources.cpus, lot.resources.memory


def find_remaining_work(sweep: SweepPlan) -> RemainingWork:
    """Return what is left of a sweep once the plan is applied; nothing where it is held."""
    count = sweep.jobs.unfinished if sweep.active else 0
    return RemainingWork(sweep.desired.settings.resources, count, partial(_list_planned_jobs, sweep))


def _list_planned_jobs(sweep: SweepPlan) -> Iterator[str]:
    ids, seen = sweep.desired.table.ids, sweep.observed
    for rows in (sweep.jobs.new, *(group.rows for group in sweep.jobs.stale)):
        yield from (ids[row] for row in rows)
    if seen is None or seen.applied is None:
        return
    known = set(seen.applied.table.ids)
    known -= seen.stopped.keys() - find_reopened_jobs(seen, sweep.desired.settings.stop_when)
    known -= sweep.adopted.keys() | seen.succeeded | seen.failed
    yield from (ids[row] for row in sweep.jobs.kept if ids[row] in known)


def _list_observed_jobs(seen: ObservedSweep) -> Iterator[str]:
    ids = seen.applied.table.ids if seen.applied else ()
    yield from (job for job in ids if not (job in seen.succeeded or job in seen.failed or job in seen.stopped))


def plan_fleets(sweeps: Sequence[SweepPlan], observed: ObservedProject) -> tuple[FleetPlan, ...]:
    """Sum up what is left to do for every fleet that a desired sweep names, and who is there to do it."""
    lots: defaultdict[str, list[RemainingWork]] = defaultdict(list)
    secrets: defaultdict[str, set[str]] = defaultdict(set)
    others: defaultdict[str, set[str]] = defaultdict(set)
    ends: defaultdict[str, list[float]] = defaultdict(list)
    for sweep in sweeps:
        lot = find_remaining_work(sweep)
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
            lot = RemainingWork(seen.applied.settings.resources, seen.unfinished, partial(_list_observed_jobs, seen))
            for fleet in here:
                lots[fleet].append(lot)
                others[fleet].update(seen.applied.settings.machine_secrets)
    counted = {fleet: count_by_resources(of) for fleet, of in lots.items()}
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
