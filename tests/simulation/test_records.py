"""What jobs log, under faults: the record of each attempt has the history that it continues, and no value more."""

from __future__ import annotations

import pytest

from tests.simulation.mutant import Mutant
from tests.simulation.story import play
from tests.simulation.world import Weather

RECORDS = Weather(records=True, jobs=(5, 200), pause_every=150)
#: Runs of a quick test.
FEW = 2
#: A run that saw none of these has not tested what it says.
MUST_SEE = ("crash", "takeover", "resumed from a checkpoint", "records of several attempts")


def test_no_value_of_a_kept_history_is_missing_from_a_record(seeds: range, request: pytest.FixtureRequest) -> None:
    asked = request.config.getoption("--seeds") or request.config.getoption("--seed")
    seen = [play(seed, RECORDS) for seed in (seeds if asked else range(FEW))]
    assert not [(result.seed, dict(result.violations)) for result in seen if result.violations]
    assert not [name for name in MUST_SEE if not any(result.counts[name] for result in seen)]


def test_a_checkpoint_that_is_ahead_of_what_was_logged_is_noticed() -> None:
    assert any(play(seed, RECORDS, Mutant(unshipped=True)).violations for seed in (4, 2, 0))


def test_files_that_are_lost_with_an_end_that_nobody_wrote_are_noticed() -> None:
    assert any(play(seed, RECORDS, Mutant(unkept=True)).violations for seed in (12, 210, 253))
