"""Curves as a report holds them: columns of short whole numbers, which compress to half of what their JSON does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from monkey.web.curve_cache import DrawnCurve

#: Points of all curves together that a report aims at, and of each curve at least and at most.
_TOTAL, _LEAST, _MOST = 300_000, 100, 600
#: Digits of a value: as many as the page shows beside the pointer.
_DIGITS = 5
#: Digits where values are close together: where all differ by less than this share of the greatest.
_CLOSE_DIGITS, _CLOSE = 7, 0.1


def limit_points(curves: int) -> int:
    """Return how many points each of so many curves keeps, at most: few curves keep more."""
    return max(_LEAST, min(_MOST, _TOTAL // max(curves, 1)))


def pack_curves(found: Mapping[str, Mapping[str, DrawnCurve]], points: int) -> dict[str, Any]:
    """Return the curves of jobs, by metric, as JSON of columns: each curve has an entry in each.

    `of`: the places of its job and its metric in `jobs` and `metrics`, and how many points were logged. `gaps`: the
    first step, and the distance of each later one; or as `spell_steps` has those at equal distances. A value is a
    whole number of `digits` times ten to the power in `powers`; None where it is not finite. `points`: of each
    curve at most so many, see `select_points`.
    """
    jobs, metrics = list(found), sorted({name for curves in found.values() for name in curves})
    places = {name: place for place, name in enumerate(metrics)}
    columns: dict[str, list[Any]] = {"of": [], "gaps": [], "digits": [], "powers": []}
    for place, job in enumerate(jobs):
        for name, curve in sorted(found[job].items()):
            told = curve.serialize(points)
            digits, powers = _split_values(told["values"])
            entry = [place, places[name], told["logged"]], _measure_gaps(told["steps"]), digits, powers
            for column, part in zip(columns.values(), entry, strict=True):
                column.append(part)
    return {"jobs": jobs, "metrics": metrics, **columns}


def _measure_gaps(steps: Any) -> Any:
    if not isinstance(steps, list):
        return steps
    return steps[:1] + [later - earlier for earlier, later in pairwise(steps)]


def _split_values(values: Sequence[float | None]) -> tuple[list[int | None], list[int]]:
    finite = [value for value in values if value is not None]
    width = max(finite, default=0) - min(finite, default=0)
    places = (_DIGITS if width > _CLOSE * max(map(abs, finite), default=0) else _CLOSE_DIGITS) - 1
    digits, powers = list[int | None](), list[int]()
    for value in values:
        whole, _, power = f"{value or 0:.{places}e}".partition("e")
        digits.append(None if value is None else int(whole.replace(".", "")))
        powers.append(int(power) - places)
    return digits, powers
