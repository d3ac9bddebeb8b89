"""One metric of one job over its steps, and the few points of it that a picture needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

from monkey.metrics.influx.influx_points import convert_to_float
from monkey.metrics.summary import is_finite

#: Points that a picture needs: a screen has few more columns.
POINTS = 500


@dataclass(frozen=True)
class Curve:
    """One metric of one job, as three columns: its points by step, then those without a step by time."""

    steps: Sequence[int | None]
    values: Sequence[float]
    #: Seconds since the epoch; 0 where the record had none.
    times: Sequence[float]

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.values)

    def choose(self, places: Sequence[int]) -> Curve:
        """Return the curve of these points."""
        steps, values, times = self.steps, self.values, self.times
        return Curve([steps[at] for at in places], [values[at] for at in places], [times[at] for at in places])

    def place(self) -> tuple[list[int], list[float]]:
        """Return x and y of what is drawn: the points with a step; of a curve without steps all, numbered from 1.

        A value that is not finite, or that no float can hold, is NaN.
        """
        stepped = [(step, value) for step, value in zip(self.steps, self.values, strict=True) if step is not None]
        chosen = stepped or list(enumerate(self.values, 1))
        floats = [convert_to_float(value) for _, value in chosen]
        return [x for x, _ in chosen], [nan if value is None else value for value in floats]


def select_points(values: Sequence[float], points: int = POINTS) -> list[int]:
    """Return the places of at most `points` values that show the same picture: of each stretch the least and greatest.

    The first and the last value stay; fewer than four points are these alone. A stretch without a finite value keeps
    one, so that a gap is seen.
    """
    count = len(values)
    if count <= points:
        return list(range(count))
    stretches = (points - 2) // 2
    chosen = {0, count - 1}
    for stretch in range(stretches):
        start, end = 1 + stretch * (count - 2) // stretches, 1 + (stretch + 1) * (count - 2) // stretches
        finite = [at for at in range(start, end) if is_finite(values[at])]
        if finite:
            # Of equal values the first and the last: a plateau keeps its ends, and a curve its number of points.
            chosen |= {min(finite, key=values.__getitem__), max(reversed(finite), key=values.__getitem__)}
        else:
            chosen.add(start)
    return sorted(chosen)


def reduce_curve(curve: Curve, points: int = POINTS) -> Curve:
    """Return the curve with at most `points` points, see `select_points`."""
    return curve if len(curve) <= points else curve.choose(select_points(curve.values, points))
