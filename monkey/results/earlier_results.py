"""A sweep's results at its last revision, to compare the newest ones with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from monkey.protocol.status.store_snapshot import SweepView
from monkey.protocol.sweeps.revision import NumberedRevision, Revision
from monkey.results.result_rows import Results, gather_results


class EarlierResults(NamedTuple):
    """The revision before, and what is known of its jobs."""

    revision: NumberedRevision
    results: Results


def gather_earlier(view: SweepView, revisions: Sequence[NumberedRevision]) -> EarlierResults | None:
    """Return the results of the last revision that asked for other jobs; None where there is none to compare with.

    One that was applied from the branch of the newest one goes before one from another branch.
    """
    newest = view.state.revision
    if newest is None or newest.settings.metric is None:
        return None
    others = [each for each in revisions if each.number < view.state.revision_at and _differs(each.revision, newest)]
    ours = [each for each in others if _branch(newest) and _branch(each.revision) == _branch(newest)]
    for each in (ours or others)[-1:]:
        old = view.with_revision(each.revision)
        settings = newest.settings  # old results are judged by the metric of now, or they could not be compared
        return EarlierResults(each, gather_results(each.revision.table, settings, old.jobs))
    return None


def _differs(one: Revision, other: Revision) -> bool:
    return one.table.ids != other.table.ids


def _branch(revision: Revision) -> str:
    return str((revision.git or {}).get("branch") or "")
