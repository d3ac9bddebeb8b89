"""Adopting: finished jobs that stand for wanted ones, by an earlier adoption, `equivalences` or `--keep-stale`."""

from __future__ import annotations

from array import array
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from monkey.plan.adoption.adopted_jobs import ADOPTED_BEFORE, AdoptedJobs
from monkey.plan.adoption.equivalent_jobs import find_equivalent_jobs
from monkey.plan.adoption.final_results import FinalResults
from monkey.plan.desired import DesiredSweep
from monkey.plan.jobs.job_changes import StaleJobs
from monkey.plan.observed import AppliedRevision, ObservedProject


class FoundAdoptions(NamedTuple):
    """The adoptions that an apply adds to a sweep, and what its author should know of `equivalences`."""

    lots: list[AdoptedJobs]
    warnings: list[str]
    #: Jobs that lose an adopted result, and are to be run.
    dropped: AbstractSet[str] = frozenset()

    @property
    def results(self) -> dict[str, str]:
        """Return job to the job whose result it takes, of all lots."""
        return {job: result for lot in self.lots for job, result in lot.results.items()}


def find_adoptions(
    want: DesiredSweep, observed: ObservedProject, finals: FinalResults, *, drop: bool = False
) -> FoundAdoptions:
    """Find the wanted jobs for which another job's result stands, and that the newest revision does not adopt so yet.

    A job that runs is left alone: it ends with a result of its own. So is one that met a condition of `stop_when`.
    `drop`: give up what was adopted before; `equivalences` still count.
    """
    if finals.empty and not want.equivalences:
        return FoundAdoptions([], [])
    seen, ids = observed.sweeps.get(want.name), want.table.ids
    applied = seen.applied if seen else None
    own = applied.adopted if applied and not drop else {}
    busy = seen.running | seen.stopped.keys() if seen else frozenset[str]()
    before, dropped, left = dict[str, str](), set[str](), array("i")
    for row, job in enumerate(ids):
        if job in observed.finished or job in busy:
            continue
        result = finals.find(job)
        if drop and result is not None:
            dropped.add(job)
            result = None
        if result is None and job not in own:
            left.append(row)
        elif result is not None and own.get(job) != result:
            before[job] = result
    lots = [AdoptedJobs(ADOPTED_BEFORE, before)] if before else []
    if not want.equivalences or not left:
        return FoundAdoptions(lots, [], dropped)
    trusted = FinalResults((), observed.finished) if drop else finals
    found = find_equivalent_jobs(want, left, observed, trusted)
    again = {job for lot in found.lots for job in lot.results}
    return FoundAdoptions(lots + found.lots, found.warnings, dropped - again)


def adopt_stale_results(
    groups: tuple[StaleJobs, ...], want: DesiredSweep, applied: AppliedRevision, keep: Collection[str], of: FinalResults
) -> tuple[tuple[StaleJobs, ...], AdoptedJobs]:
    """Take finished jobs that are stale for no reason but those of `keep`; return what is left stale, and them."""
    left, taken = list[StaleJobs](), dict[str, str]()
    for group in groups:
        if not all(reason.kind in keep for reason in group.reasons):
            left.append(group)
            continue
        rows, befores = array("i"), array("i")
        for row, before in zip(group.rows, group.before, strict=True):
            job = applied.table.ids[before]
            result = of.find(applied.adopted.get(job, job))
            if result is not None:
                taken[want.table.ids[row]] = result
            else:
                rows.append(row)
                befores.append(before)
        if rows:
            left.append(StaleJobs(group.reasons, rows, befores))
    return tuple(left), AdoptedJobs(f"--keep-stale {', '.join(keep)}", taken)


def keep_adoptions(want: DesiredSweep, applied: AppliedRevision, dropped: AbstractSet[str]) -> dict[str, str]:
    """Return the results that the newest revision adopts, for jobs that are still wanted and not `dropped`."""
    if not applied.adopted:
        return {}
    wanted = set(want.table.ids) - dropped
    return {job: result for job, result in applied.adopted.items() if job in wanted}
