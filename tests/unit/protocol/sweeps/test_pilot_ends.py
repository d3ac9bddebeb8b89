"""Ends that come with a pilot's time: which of them count, and what the verdict is then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monkey.protocol.entries import Claim, ClaimEnd, EndEntry, JobEntry, decode_entry
from monkey.protocol.entry_log import EntryLog, tally_log
from monkey.protocol.journal import JournalBlock, make_record
from monkey.protocol.journal_index import JournalIndex
from monkey.protocol.layout import Keys
from monkey.protocol.sweeps.sweep_state import SweepState
from monkey.protocol.sweeps.verdicts import Verdict, explain_cut, explain_cut_off, judge_job
from monkey.store.memory import MemoryStore
from tests.unit.protocol.sweeps.test_sweep_log import JOBS, REVISION

JOB = JOBS[0]
STATE = SweepState("digits", revision=REVISION)
CLAIM = Claim("f/m/b", 1, 1, "digits")
#: An end that counts: it had most of four hours, and the store has no checkpoint.
CUT = EndEntry(ClaimEnd.RELEASED, "f/m/b", 1, "digits", explain_cut(14400), seconds=14000, out=1, pilot_time=14400)


def make_log(*ends: EndEntry) -> EntryLog:
    """Return the log of a job whose attempts ended so."""
    log = EntryLog("jobs/x/")
    entries: list[JobEntry] = []
    for end in ends:
        entries += [CLAIM, replace(end, out=len(entries) + 1)]
    log.entries = entries
    return log


def judge(*ends: EndEntry, since: int = 0) -> Verdict:
    """Return the verdict by the log, which the one by the journals must equal."""
    log, state = make_log(*ends), replace(STATE, retries={JOB: since} if since else {})
    verdict = judge_job(JOB, tally_log(log), state)
    for lean in (False, True):
        index = JournalIndex(MemoryStore(), Keys("p"))
        index.lean = lean
        for k, entry in enumerate(log.entries, 1):
            if isinstance(entry, EndEntry):
                index.note(make_record(JOB, k, entry))
        tally = index.tally(JOB)
        assert tally and judge_job(JOB, tally, state) is verdict
    return verdict


SAVED = replace(CUT, checkpoint=3)


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [
        ([CUT], Verdict.OPEN),
        ([CUT, CUT], Verdict.FAILED),
        ([CUT, replace(CUT, outcome=ClaimEnd.RELEASED, pilot_time=0.0), CUT], Verdict.FAILED),
        ([CUT, replace(CUT, pilot_time=0.0)], Verdict.OPEN),  # as earlier versions wrote it
        ([CUT, replace(CUT, seconds=7000)], Verdict.OPEN),  # it had little of the time
        ([CUT, SAVED], Verdict.OPEN),  # its own checkpoint: its claim is at 3
        ([CUT, SAVED, replace(CUT, checkpoint=3)], Verdict.OPEN),  # the second continued from that
        ([CUT, SAVED, replace(CUT, checkpoint=3), replace(CUT, checkpoint=3)], Verdict.FAILED),
    ],
)
def test_two_ends_without_a_checkpoint_in_between_make_a_job_fail(ends: list[EndEntry], verdict: Verdict) -> None:
    assert judge(*ends) is verdict


def test_a_retry_opens_it_again() -> None:
    assert judge(CUT, CUT, since=4) is Verdict.OPEN
    assert judge(CUT, CUT, CUT, since=4) is Verdict.OPEN
    assert judge(CUT, CUT, CUT, CUT, since=4) is Verdict.FAILED


def test_a_lost_attempt_that_had_saved_begins_the_count_again() -> None:
    log = make_log(CUT)
    log.entries += [
        CLAIM,
        replace(CLAIM, agent="f/n/b", checkpoint=3),
        replace(CUT, agent="f/n/b", out=4, checkpoint=3),
    ]
    assert judge_job(JOB, tally_log(log), STATE) is Verdict.OPEN


def test_what_older_readers_find_in_a_journal_is_of_a_shape_that_they_know() -> None:
    block = JournalBlock()
    block.add(make_record(JOB, 2, CUT))
    (extra,) = block.extra.values()
    assert extra == {"checkpoint": 0, "reason": "ended with its pilot's time (4h) and saved nothing"}
    assert block.outcomes == ["r"] and decode_entry("k", CUT.encode()) == CUT


def test_the_verdict_says_what_to_do() -> None:
    expected = "ended with its pilot's time (4h) twice and saved nothing; save checkpoints, or raise time"
    assert explain_cut_off(explain_cut(14400)) == expected
    assert explain_cut_off("something else") == "something else"
