"""A picture's points: few, with every peak, the first and the last; what is not finite is a gap."""

from __future__ import annotations

import random
from array import array
from math import inf, nan

import pytest

from monkey.web.curves.curve_points import reduce_curve, serialize_curve, serialize_steps
from monkey.web.curves.curve_reading import Curve


def made(*values: float) -> Curve:
    return Curve(array("d", range(len(values))), array("d", values))


@pytest.mark.parametrize("seed", range(20))
def test_no_peak_is_lost_and_the_points_are_few(seed: int) -> None:
    dice = random.Random(seed)
    values = [dice.gauss(0, 1) for _ in range(dice.randrange(5, 5_000))]
    values[dice.randrange(len(values))] = 99.0
    values[dice.randrange(len(values))] = -99.0
    steps, kept = reduce_curve(made(*values), 100)
    assert len(kept) <= 102 and {max(values), min(values)} <= set(kept)
    assert steps == sorted(set(steps)) and (steps[0], steps[-1]) == (0, len(values) - 1)
    assert all(values[int(step)] == value for step, value in zip(steps, kept, strict=True))


def test_what_is_not_finite_is_a_gap_however_few_points_there_are() -> None:
    values = [float(at) for at in range(1000)]
    values[500:510] = [nan, inf, -inf] * 3 + [nan]
    assert None in reduce_curve(made(*values), 50)[1]
    assert reduce_curve(made(nan, 1.0, inf), 50)[1] == [None, 1.0, None]


def test_equal_steps_are_spelt_as_a_rule() -> None:
    assert serialize_steps([0.0, 2.0, 4.0]) == {"from": 0, "by": 2, "count": 3}
    assert serialize_steps([0.0, 2.0, 3.0]) == [0, 2, 3]
    assert serialize_curve(made(1 / 3), 9) == {"steps": [0], "values": [0.3333333], "logged": 1}
