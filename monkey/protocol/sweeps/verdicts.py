"""Verdicts on jobs: derived from logs each time, never stored, so that a retry or a raised cap has nothing to undo."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from monkey.protocol.entry_log import LogTally
from monkey.protocol.sweeps.sweep_state import SweepState
from monkey.spec.job.recipe import SweepSettings
from monkey.spec.job.stop_when import StopRule, find_met_rule
from monkey.spec.yaml.units import format_duration

#: Attempts that may vanish in a row with their agents before a job is given up: a job may be what kills them (out of
#: memory). One that had saved a checkpoint of its own begins the count again: the job gets on.
MAX_LOSSES = 10
#: Attempts that may vanish in all, nonetheless.
MAX_LOSSES_IN_ALL = 100
#: Attempts in a row that end with the time of their machines, without a checkpoint of their own, until a job is given
#: up: one that is longer than that time would run for ever.
MAX_CUTS = 2


_AND_NOTHING = " and saved nothing"


class Verdict(StrEnum):
    """What a sweep thinks of a job."""

    OPEN = "open"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    #: It met a condition that the sweep has now; another sweep, or another condition, may want it to continue.
    STOPPED = "stopped"


def judge_job(job: str, tally: LogTally, sweep: SweepState) -> Verdict:
    """Judge the job for this sweep: failures count since the sweep's last retry of it."""
    return judge_tally(tally, sweep.revision.settings if sweep.revision else None, sweep.retries.get(job, 0))


def judge_tally(tally: LogTally, settings: SweepSettings | None, since: int = 0) -> Verdict:
    """Judge a job by what its log amounts to, for a sweep of these settings that last retried it at `since`.

    `settings`: None where no revision of the sweep is known.
    """
    if tally.succeeded:
        return Verdict.SUCCEEDED
    if settings is None or not (tally.any_failure or tally.stopped):
        return Verdict.OPEN
    if find_stop_position(tally, settings.stop_when, since):
        return Verdict.STOPPED
    failures = sum(k > since for k in tally.failed_at)
    over = failures > settings.max_retries or _vanishes(tally, since) or is_cut_off(tally, since)
    return Verdict.FAILED if over else Verdict.OPEN


def is_cut_off(tally: LogTally, since: int) -> bool:
    """Has the job ended with its machines' time too often after position `since`, and saved no checkpoint meanwhile?"""
    after = max([since, *tally.saved_at])
    checkpoints = [checkpoint for k, checkpoint in tally.cut_at.items() if k > after]
    return checkpoints.count(max(checkpoints, default=0)) >= MAX_CUTS


def find_stop_position(tally: LogTally, rules: Iterable[StopRule], since: int = 0) -> int:
    """Return the position after `since` at which the job met one of the rules; 0 for none."""
    return next((k for k, seen in tally.stopped.items() if k > since and find_met_rule(rules, seen)), 0)


def _vanishes(tally: LogTally, since: int) -> bool:
    """Did too many attempts vanish after position `since`?"""
    saved = [k for k in tally.saved_at if k > since]
    lost = [k for k in tally.lost_at if k > since]
    in_a_row = sum(k > max(saved, default=0) for k in lost)
    return in_a_row > MAX_LOSSES or len(saved) + len(lost) > MAX_LOSSES_IN_ALL


def explain_cut(pilot_time: float) -> str:
    """Return the reason of an end that `EndEntry.is_cut`; `pilot_time`: seconds that the attempt's machine had."""
    return f"ended with its pilot's time ({format_duration(round(pilot_time))}){_AND_NOTHING}"


def explain_cut_off(reason: str) -> str:
    """Return why a job that was cut too often has failed, by the reason of its last end."""
    begin = reason.removesuffix(_AND_NOTHING)
    return f"{begin} twice{_AND_NOTHING}; save checkpoints, or raise time" if begin != reason else reason
