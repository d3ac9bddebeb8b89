"""Verdicts on jobs: derived from logs each time, never stored, so that a retry or a raised cap has nothing to undo."""

from __future__ import annotations

from enum import StrEnum

from monkey.protocol.log import Tally
from monkey.protocol.sweeps import SweepState

#: Attempts that may vanish with their agents before a job is given up: a job may be what kills them (out of memory).
MAX_LOSSES = 10


class Verdict(StrEnum):
    """What a sweep thinks of a job."""

    OPEN = "open"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


def verdict(job: str, tally: Tally, sweep: SweepState) -> Verdict:
    """Judge the job for this sweep: failures count since the sweep's last retry of it."""
    if tally.succeeded:
        return Verdict.SUCCEEDED
    if (not tally.failed_at and not tally.lost_at) or sweep.revision is None:
        return Verdict.OPEN
    since = sweep.retries.get(job, 0)
    failures = sum(k > since for k in tally.failed_at)
    losses = sum(k > since for k in tally.lost_at)
    over = failures > sweep.revision.settings.max_retries or losses > MAX_LOSSES
    return Verdict.FAILED if over else Verdict.OPEN
