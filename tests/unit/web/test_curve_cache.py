"""Curves as the page gets them: few points, equal steps as a rule, gaps where values are not finite."""

from __future__ import annotations

from array import array
from math import inf, nan

from monkey.web.curve_cache import DrawnCurve, spell_steps


def made(*values: float) -> DrawnCurve:
    return DrawnCurve(array("d", range(len(values))), array("d", values))


def test_a_curve_is_few_points_with_its_peaks() -> None:
    values = [0.0] * 1000
    values[123], values[877] = 9.0, -9.0
    found = made(*values).serialize(100)
    assert {9.0, -9.0} <= set(found["values"]) and len(found["values"]) <= 100 and found["logged"] == 1000


def test_what_is_not_finite_is_a_gap() -> None:
    assert made(1 / 3, nan, inf).serialize(50)["values"] == [0.3333333, None, None]


def test_equal_steps_are_spelt_as_a_rule() -> None:
    assert spell_steps([0.0, 2.0, 4.0]) == {"from": 0, "by": 2, "count": 3}
    assert spell_steps([0.0, 2.0, 3.0]) == [0, 2, 3]
