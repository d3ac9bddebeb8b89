"""The number of jobs that are new, stale and removed from one revision to the next."""

from __future__ import annotations

from array import array
from typing import NamedTuple

from monkey.plan.jobs.matching import match_rows
from monkey.plan.observed import AppliedRevision


class JobCounts(NamedTuple):
    """Jobs of a revision that the one before did not have, that replace one of it, and that it alone has."""

    new: int = 0
    stale: int = 0
    removed: int = 0


def count_changed_jobs(before: AppliedRevision | None, after: AppliedRevision) -> JobCounts:
    """Return how many jobs the later revision changes, as a plan counts them; none before: all are new."""
    if before is None:
        return JobCounts(new=len(after.table))
    known, wanted = set(before.table.ids), set(after.table.ids)
    fresh = array("i", (row for row, job in enumerate(after.table.ids) if job not in known))
    gone = array("i", (row for row, job in enumerate(before.table.ids) if job not in wanted))
    matched = match_rows(after.table, fresh, before.table, gone)
    return JobCounts(len(matched.unmatched), len(matched.rows), len(gone) - len(matched.replaced))
