"""Verdicts on a job that was retried: what was before the retry counts for nothing."""

from __future__ import annotations

from dataclasses import replace

from monkey.protocol.entry_log import LogTally
from monkey.protocol.sweeps.verdicts import MAX_LOSSES_IN_ALL, Verdict, find_stop_position, judge_tally
from monkey.spec.job.stop_when import StopEvidence, StopRule
from tests.unit.protocol.sweeps.test_sweep_log import REVISION

RULE = StopRule("loss", kind="nan")
EVIDENCE = StopEvidence("loss", float("nan"))
SETTINGS = replace(REVISION.settings, stop_when=[RULE])


def test_stopped_job_that_is_retried_is_open() -> None:
    tally = LogTally()
    tally.stopped = {2: EVIDENCE}
    assert find_stop_position(tally, [RULE]) == 2
    assert judge_tally(tally, SETTINGS) is Verdict.STOPPED
    assert find_stop_position(tally, [RULE], since=2) == 0
    assert judge_tally(tally, SETTINGS, since=2) is Verdict.OPEN
    tally.stopped[4] = EVIDENCE
    assert find_stop_position(tally, [RULE], since=2) == 4
    assert judge_tally(tally, SETTINGS, since=2) is Verdict.STOPPED


def test_job_that_vanished_too_often_in_all_and_is_retried_is_open() -> None:
    tally = LogTally()
    tally.saved_at = list(range(1, MAX_LOSSES_IN_ALL + 2))
    assert judge_tally(tally, SETTINGS) is Verdict.FAILED
    assert judge_tally(tally, SETTINGS, since=MAX_LOSSES_IN_ALL + 1) is Verdict.OPEN
    tally.saved_at.append(MAX_LOSSES_IN_ALL + 2)
    assert judge_tally(tally, SETTINGS, since=MAX_LOSSES_IN_ALL + 1) is Verdict.OPEN
    tally.lost_at = [*tally.saved_at]
    assert judge_tally(tally, SETTINGS, since=MAX_LOSSES_IN_ALL + 1) is Verdict.OPEN
