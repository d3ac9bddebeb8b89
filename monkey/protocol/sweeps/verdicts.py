"""Verdicts on jobs: derived from logs each time, never stored, so that a retry or a raised cap has nothing to undo."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from monkey.protocol.entry_log import LogTally
from monkey.protocol.sweeps.sweep_state import SweepState
from monkey.spec.job.stop_when import StopRule, find_met_rule

#: Attempts that may vanish in a row with their agents before a job is given up: a job may be what kills them (out of
#: memory). One that had saved a checkpoint of its own begins the count again: the job gets on.
MAX_LOSSES = 10
#: Attempts that may vanish in all, nonetheless.
MAX_LOSSES_IN_ALL = 100


class Verdict(StrEnum):
    """What a sweep thinks of a job."""

    OPEN = "open"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    #: It met a condition that the sweep has now; another sweep, or another condition, may want it to continue.
    STOPPED = "stopped"


def judge_job(job: str, tally: LogTally, sweep: SweepState) -> Verdict:
    """Judge the job for this sweep: failures count since the sweep's last retry of it."""
    if tally.succeeded:
        return Verdict.SUCCEEDED
    if not (tally.failed_at or tally.lost_at or tally.saved_at or tally.stopped) or sweep.revision is None:
        return Verdict.OPEN
    since = sweep.retries.get(job, 0)
    if find_stop_position(tally, sweep.revision.settings.stop_when, since):
        return Verdict.STOPPED
    failures = sum(k > since for k in tally.failed_at)
    over = failures > sweep.revision.settings.max_retries or _vanishes(tally, since)
    return Verdict.FAILED if over else Verdict.OPEN


def find_stop_position(tally: LogTally, rules: Iterable[StopRule], since: int = 0) -> int:
    """Return the position after `since` at which the job met one of the rules; 0 for none."""
    return next((k for k, seen in tally.stopped.items() if k > since and find_met_rule(rules, seen)), 0)


def _vanishes(tally: LogTally, since: int) -> bool:
    """Did too many attempts vanish after position `since`?"""
    saved = [k for k in tally.saved_at if k > since]
    lost = [k for k in tally.lost_at if k > since]
    in_a_row = sum(k > max(saved, default=0) for k in lost)
    return in_a_row > MAX_LOSSES or len(saved) + len(lost) > MAX_LOSSES_IN_ALL
