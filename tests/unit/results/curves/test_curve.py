"""A picture of a curve: few points, and nothing that the eye would miss."""

from __future__ import annotations

from math import isfinite, nan

from hypothesis import given
from hypothesis import strategies as st

from monkey.results.curves.curve import POINTS, Curve, reduce_curve, select_points

numbers = st.floats(allow_nan=True, allow_infinity=True, width=32)


@given(st.lists(numbers, max_size=400), st.integers(2, 60))
def test_the_ends_and_extremes_stay_and_no_more_than_asked(values: list[float], points: int) -> None:
    chosen = select_points(values, points)
    assert chosen == sorted(set(chosen)) and len(chosen) <= max(points, 2)
    if len(values) <= points:
        assert chosen == list(range(len(values)))
        return
    assert {0, len(values) - 1} <= {*chosen}
    finite, kept = ([value for value in some if isfinite(value)] for some in (values, [values[at] for at in chosen]))
    if points >= 4 and finite:
        assert (min(kept), max(kept)) == (min(finite), max(finite))


def test_a_spike_and_a_gap_are_seen() -> None:
    values = [0.0] * 100_000
    values[77_777], values[40_000:42_000] = 9.0, [nan] * 2_000
    curve = reduce_curve(Curve(range(100_000), values, [0.0] * 100_000))
    assert len(curve) <= POINTS and 9.0 in curve.values
    assert [step for step, value in zip(curve.steps, curve.values, strict=True) if value != value]
    assert curve.steps[curve.values.index(9.0)] == 77_777


def test_what_is_drawn_has_steps_or_is_numbered_and_fits_a_float() -> None:
    assert Curve([3, 5, None], [1, 2.5, 7], [0, 0, 0]).place() == ([3, 5], [1.0, 2.5])
    x, y = Curve([None, None, None], [1, 10**400, float("inf")], [0, 0, 0]).place()
    assert x == [1, 2, 3] and y[0] == 1.0 and all(value != value for value in y[1:])
