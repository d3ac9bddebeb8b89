"""Two jobs or two revisions, compared by what they are."""

from __future__ import annotations

from monkey.errors import MonkeyError
from monkey.protocol.layout import Keys
from monkey.protocol.record.recorded_job import RecordedJob
from monkey.protocol.sweeps.revision import NumberedRevision
from monkey.results.differences.difference import Difference
from monkey.results.differences.job_difference import compare_jobs
from monkey.results.differences.revision_difference import compare_revisions
from monkey.store.store_port import Store

_Side = RecordedJob | NumberedRevision


async def compare_sides(store: Store, keys: Keys, before: _Side, after: _Side) -> Difference:
    """Return what differs between two jobs or two revisions. Raises MonkeyError for one of each, StoreError."""
    if isinstance(before, RecordedJob) and isinstance(after, RecordedJob):
        return await compare_jobs(store, keys, before, after)
    if isinstance(before, RecordedJob) or isinstance(after, RecordedJob):
        raise MonkeyError("expected two jobs or two revisions, found one of each")
    return await compare_revisions(store, keys, before, after)
