"""What is left to do for every fleet. A job that several sweeps have is run once, and counted once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from monkey.plan.change import FleetPlan, SweepPlan
from monkey.plan.jobs.states import find_reopened_jobs
from monkey.plan.observed import ObservedProject, ObservedSweep
from monkey.spec.job.image_reference import spell_pinned_image
from monkey.spec.job.recipe import JobResources, Recipe, SweepSettings


@dataclass(frozen=True)
class RemainingWork:
    """What is left to be run of one sweep."""

    #: What each of its jobs asks for.
    resources: JobResources
    #: How many jobs, and which: they are looked at only where another sweep may have the same.
    count: int
    jobs: Callable[[], Iterable[str]]
    #: Seconds that one of them may run (None: no limit), and that it may take to end after SIGTERM.
    timeout: float | None = None
    grace: float = 10.0
    #: The image that its jobs need, NAME@sha256:…; "" for none.
    image: str = ""


def make_remaining_work(
    recipe: Recipe, settings: SweepSettings, count: int, jobs: Callable[[], Iterable[str]]
) -> RemainingWork:
    """Return what is left of a sweep: `count` jobs, which `jobs` lists."""
    image = spell_pinned_image(settings.image, recipe.image)
    return RemainingWork(settings.resources, count, jobs, settings.timeout, settings.grace, image)


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


def count_by_image(lots: Iterable[RemainingWork]) -> dict[str, tuple[tuple[JobResources, int], ...]]:
    """Return the same by the image that the jobs need; images of which nothing is left are not among them."""
    parts: defaultdict[str, list[RemainingWork]] = defaultdict(list)
    for lot in lots:
        parts[lot.image] += [lot] if lot.count else []
    return {image: count_by_resources(of) for image, of in sorted(parts.items()) if of}


def _rank_resources(lot: RemainingWork) -> tuple[float, ...]:
    return lot.resources.gpus, lot.resources.cpus, lot.resources.memory


def find_remaining_work(sweep: SweepPlan) -> RemainingWork:
    """Return what is left of a sweep once the plan is applied; nothing where it is held."""
    count, of = sweep.jobs.unfinished if sweep.active else 0, sweep.desired
    return make_remaining_work(of.recipe, of.settings, count, partial(_list_planned_jobs, sweep))


def list_timeouts(lots: Iterable[RemainingWork]) -> frozenset[float | None]:
    """Return the limits of jobs that are left, in seconds; None is among them where jobs have none."""
    return frozenset(lot.timeout for lot in lots if lot.count)


def find_longest_grace(lots: Iterable[RemainingWork]) -> float:
    """Return the seconds that any of the jobs may take to end."""
    return max((lot.grace for lot in lots if lot.count), default=10.0)


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
        if name in names or not seen.active or not seen.applied or seen.foreign:
            continue  # a stranger's sweep is left alone: its image must be no machine of ours
        here = lots.keys() & set(seen.applied.settings.providers)
        for fleet in here:
            (ends if seen.unfinished else through)[fleet] += [seen.expires] if seen.expires is not None else []
        if seen.unfinished:
            jobs = partial(_list_observed_jobs, seen)
            lot = make_remaining_work(seen.applied.recipe, seen.applied.settings, seen.unfinished, jobs)
            for fleet in here:
                lots[fleet].append(lot)
                others[fleet].update(seen.applied.settings.machine_secrets)
    counted = {fleet: count_by_resources(of) for fleet, of in lots.items()}
    return tuple(
        FleetPlan(
            fleet,
            sum(count for _, count in asked),
            observed.agents.get(fleet, 0),
            secrets=frozenset(secrets[fleet]),
            others=frozenset(others[fleet] - secrets[fleet]),
            expires=max(ends[fleet], default=None),
            through=max(through[fleet], default=None),
            asked=asked,
            images=count_by_image(lots[fleet]),
            timeouts=list_timeouts(lots[fleet]),
            grace=find_longest_grace(lots[fleet]),
        )
        for fleet, asked in counted.items()
    )
