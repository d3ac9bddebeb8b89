"""How a sweep of the store stands, as advice on it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from monkey.plan.advice import SweepSituation
from monkey.protocol.status.store_snapshot import JobState, SweepView
from monkey.store.content.objects import SEND_AGAIN


def judge_standing(view: SweepView, counts: Mapping[JobState, int] | None = None) -> SweepSituation:
    """Return how the sweep stands; `counts`: of its jobs, where they were counted already."""
    counts = view.counts if counts is None else counts
    failed = counts.get(JobState.FAILED, 0)
    return SweepSituation(
        view.state.name,
        failed,
        sum(counts.values())
        - failed
        - counts.get(JobState.SUCCEEDED, 0)
        - counts.get(JobState.STOPPED, 0)
        + view.left_out,
        view.state.paused,
        view.state.cancelled is not None,
        view.state.revision is not None and view.state.revision.settings.fail_fast,
        needs_data_again(view, (job for job in view.ids if view.where(job) is JobState.FAILED)) if failed else False,
        view.over,
    )


def needs_data_again(view: SweepView, failed: Iterable[str]) -> bool:
    """Say whether one of these jobs failed because the store lacks its data, or has it damaged."""
    if view.state.revision is None or not view.state.revision.recipe.datasets:
        return False
    return any(SEND_AGAIN in (view.view(job).reason or "") for job in failed)
