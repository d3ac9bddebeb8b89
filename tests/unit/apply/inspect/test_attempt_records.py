"""The tries at a job, numbered as the job itself is told."""

from __future__ import annotations

import pytest

from monkey.apply.inspect.attempt_records import find_attempt
from monkey.errors import NotFound
from monkey.protocol.entries import Claim, ClaimEnd, EndEntry, JobEntry, TornEntry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.record.job_attempts import list_attempts

MINE, YOURS = Claim("local/a/1", 1, 0, "s"), Claim("local/b/1", 2, 0, "s")
ON = Claim("local/a/1", 3, 0, "s", continues=True)
DONE, GIVEN = EndEntry(ClaimEnd.SUCCEEDED, "local/a/1", 1), EndEntry(ClaimEnd.RELEASED, "local/a/1", 1, seconds=2.0)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], []),
        ([MINE], [(1, 1, None)]),
        ([MINE, DONE], [(1, 1, DONE)]),
        ([MINE, GIVEN, YOURS, DONE], [(1, 1, GIVEN), (2, 3, DONE)]),
        ([MINE, ON, ON, DONE], [(1, 1, DONE)]),
        ([MINE, ON, YOURS], [(1, 1, YOURS), (2, 3, None)]),
        ([MINE, TornEntry("k/2"), YOURS, DONE], [(1, 1, TornEntry("k/2")), (2, 3, DONE)]),
        ([TornEntry("k/1"), MINE, DONE], [(1, 2, DONE)]),
    ],
)
def test_an_attempt_is_a_claim_and_what_ends_it(
    entries: list[JobEntry], expected: list[tuple[int, int, JobEntry | None]]
) -> None:
    log = EntryLog("k/")
    log.entries = entries
    assert [(one.number, one.k, one.after) for one in list_attempts(log)] == expected


def test_an_attempt_that_never_was_is_told_with_those_that_were() -> None:
    log = EntryLog("k/")
    log.entries = [MINE, GIVEN, YOURS]
    found = list_attempts(log)
    assert find_attempt(found, 2, "j").claim == YOURS
    for number in (-1, 0, 3):
        with pytest.raises(NotFound, match=f"job j has no attempt {number}, but 1 to 2"):
            find_attempt(found, number, "j")
    with pytest.raises(NotFound, match="no attempt 2, but only 1"):
        find_attempt(found[:1], 2, "j")
    with pytest.raises(NotFound, match="nobody has begun it"):
        find_attempt([], 1, "j")
