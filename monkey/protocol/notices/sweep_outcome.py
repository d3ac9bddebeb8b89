"""What has become of a sweep, for people who were not there: as one word, in a few words, and as a notice."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from monkey.protocol.notices.sweep_notices import (
    Notice,
    find_final_jobs,
    make_end_notice,
    make_expiry_notice,
    make_notice,
    make_silence_notice,
)
from monkey.protocol.status.store_snapshot import JobState, StoreSnapshot, SweepView

#: Seconds in which nothing of a sweep ran that has jobs left: as `after` of `notify:` has it where it is not set.
STALLED_SECONDS = 600.0
#: The states of jobs that are told, in this order; others are what is left.
_TOLD = (JobState.SUCCEEDED, JobState.STOPPED, JobState.FAILED)


class SweepVerdict(StrEnum):
    """What a sweep has come to."""

    WORKING = "working"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"
    STALLED = "stalled"
    #: By a person.
    CANCELLED = "cancelled"


class SweepOutcome(NamedTuple):
    """A sweep's verdict, its jobs in a few words ("12/36, 2 failed"), and the notice of it where it is one."""

    verdict: SweepVerdict
    text: str
    notice: Notice | None = None


def judge_sweep(project: str, snapshot: StoreSnapshot, view: SweepView, now: float) -> SweepOutcome:
    """Say what has become of a sweep. `now`: seconds since the epoch."""
    state, counts = view.state, view.counts
    notice = make_end_notice(project, state, find_final_jobs(view))
    if notice is not None:
        return judge_notice(view, notice)
    told = count_jobs(counts)
    if state.cancelled is not None:
        text = f"cancelled: {told}" + (f" ({state.cancelled})" if state.cancelled != "cancelled" else "")
        return SweepOutcome(
            SweepVerdict.CANCELLED, text, make_notice(project, state, "cancelled", [state.changed_at], state.cancelled)
        )
    if view.over:
        return judge_notice(view, make_expiry_notice(project, state))
    if state.paused:
        return SweepOutcome(SweepVerdict.PAUSED, f"paused: {told}")
    if _is_silent(snapshot, view, counts, now):
        return judge_notice(view, make_silence_notice(project, state, STALLED_SECONDS))
    return SweepOutcome(SweepVerdict.WORKING, told)


def judge_notice(view: SweepView, notice: Notice) -> SweepOutcome:
    """Say what has become of a sweep by the notice of it: agents know sooner than the store shows."""
    verdict = SweepVerdict(notice["kind"])
    if verdict is not SweepVerdict.STALLED:
        return SweepOutcome(verdict, notice["reason"], notice)
    return SweepOutcome(verdict, f"{'expired' if view.over else 'stalled'}: {count_jobs(view.counts)}", notice)


def count_jobs(counts: Mapping[JobState, int]) -> str:
    """Return "12/36, 2 failed": the jobs that have ended, of all."""
    ended = sum(counts.get(state, 0) for state in _TOLD)
    worse = [f"{counts[state]:,} {state}" for state in _TOLD[1:] if counts.get(state)]
    return ", ".join([f"{ended:,}/{sum(counts.values()):,}", *worse])


def _is_silent(snapshot: StoreSnapshot, view: SweepView, counts: Mapping[JobState, int], now: float) -> bool:
    """Has nothing of the sweep, and nothing before it in its queues, run for long? By wall clocks: for people."""
    revision = view.state.revision
    if revision is None or counts.get(JobState.RUNNING) or counts.get(JobState.FROZEN):
        return False
    if view.state.changed_at != view.state.revision_at:
        return False  # an order came later, and orders do not say when
    agents = [agent for agent in snapshot.agents if agent.fleet in revision.settings.providers]
    if any(agent.alive and agent.jobs for agent in agents):
        return False
    try:
        signs = [datetime.fromisoformat(revision.at).timestamp()]
    except ValueError:
        return False
    signs += [agent.at for agent in agents if not agent.alive]
    signs += [seen.ended for seen in view.jobs.values() if seen.ended is not None]
    return now - max(signs) > STALLED_SECONDS
