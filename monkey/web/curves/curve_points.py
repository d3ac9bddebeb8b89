"""The points of a curve that a picture shows: of each narrow part of the steps the lowest and the highest value."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from math import isfinite
from typing import Any

from monkey.web.curves.curve_reading import Curve


def reduce_curve(curve: Curve, points: int) -> tuple[list[float], list[float | None]]:
    """Return at most about `points` points, the first and the last among them. None stands for what is not finite.

    Each bucket keeps its lowest and its highest value, in their order: no peak is lost.
    """
    steps, values = curve.steps, curve.values
    count = len(steps)
    if count <= max(points, 4):
        return list(steps), [value if isfinite(value) else None for value in values]
    places = [0, *_find_extremes(values, count, max(1, (points - 2) // 2)), count - 1]
    kept = list(dict.fromkeys(places))
    return [steps[at] for at in kept], [values[at] if isfinite(values[at]) else None for at in kept]


def _find_extremes(values: Any, count: int, buckets: int) -> Iterator[int]:
    for bucket in range(buckets):
        start, end = 1 + bucket * (count - 2) // buckets, 1 + (bucket + 1) * (count - 2) // buckets
        if start >= end:
            continue
        part = values[start:end]
        # A value that is not finite is an extreme of its own: the picture has a gap there.
        odd = next((at for at, value in enumerate(part) if not isfinite(value)), None)
        finite = [value for value in part if isfinite(value)]
        found = {odd} if odd is not None else set()
        found |= {part.index(min(finite)), part.index(max(finite))} if finite else set()
        yield from (start + at for at in sorted(found))


def serialize_steps(steps: list[float]) -> Any:
    """Return the steps as JSON: those at equal distances, as most are, by their first, distance and number."""
    if len(steps) > 2:
        by = steps[1] - steps[0]
        if all(later - earlier == by for earlier, later in itertools.pairwise(steps)):
            return {"from": _spell_step(steps[0]), "by": _spell_step(by), "count": len(steps)}
    return [_spell_step(step) for step in steps]


def _spell_step(step: float) -> float | int:
    return int(step) if step == int(step) else step


def serialize_curve(curve: Curve, points: int) -> dict[str, Any]:
    """Return a curve as JSON, values to seven digits: more are not seen."""
    steps, values = reduce_curve(curve, points)
    return {
        "steps": serialize_steps(steps),
        "values": [None if value is None else float(f"{value:.7g}") for value in values],
        "logged": len(curve.steps),
    }
