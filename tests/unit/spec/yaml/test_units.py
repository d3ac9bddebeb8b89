"""Durations as people write them, in specs and after options."""

from __future__ import annotations

import pytest

from monkey.spec.job.expires import parse_expiry
from monkey.spec.yaml.mistakes import MistakesError
from monkey.spec.yaml.units import parse_duration


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("2", 2), ("90", 90), ("1.5", 1.5), (90, 90), ("2h", 7200), ("1d12h", 129600), ("1.5h", 5400), ("1m30s", 90)],
)
def test_a_duration_is_a_number_of_seconds_or_has_units(written: str | float, seconds: float) -> None:
    assert parse_duration(written) == seconds
    assert parse_expiry(written).after == seconds


@pytest.mark.parametrize("written", ["", "0", "-2", "2 h", "1e3", True, None, "nan", "٣", "2x", "h"])
def test_other_words_are_none(written: object) -> None:
    with pytest.raises(MistakesError, match="expected a duration"):
        parse_duration(written)


def test_a_day_without_dashes_is_no_duration() -> None:
    with pytest.raises(MistakesError, match=r"a time with its zone|a duration or a time"):
        parse_expiry("20261201")
