"""The fold of metrics files into curves, by the same rules as the summary that the table of results shows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from monkey.metrics.history_summary import LoggedPart, fold_parts
from monkey.metrics.metric_log import is_metric_name
from monkey.metrics.record_feed import MAX_METRICS, RecordFeed, convert_to_number
from monkey.results.curves.curve import Curve

Curves = dict[str, Curve]


class _Point(NamedTuple):
    at: float
    value: float
    source: str


class _Points:
    """The points of one metric of one attempt."""

    def __init__(self) -> None:
        self.stepped: dict[int, _Point] = {}
        self.free: list[_Point] = []

    def add(self, step: int | None, point: _Point) -> None:
        if step is None:
            self.free.append(point)
            return
        known = self.stepped.get(step)
        # As a summary chooses the last value: the file's order, and between files the clocks.
        if known is None or known.source == point.source or point.at >= known.at:
            self.stepped[step] = point


class CurveFold(RecordFeed):
    """Folds the records of one attempt into points, the later one of two with the same step."""

    def __init__(self, metrics: Collection[str] = ()) -> None:
        """Keep these metrics; all, if none is named."""
        super().__init__()
        self._wanted = frozenset(metrics)
        self.found: dict[str, _Points] = {}

    def _value(self, name: str, value: object, step: int | None, at: float, source: str) -> None:
        points = self.found.get(name)
        if points is None:
            if (self._wanted and name not in self._wanted) or not is_metric_name(name):
                return
            if len(self.found) >= MAX_METRICS and not self._wanted:
                return
            points = self.found[name] = _Points()
        number = convert_to_number(value)
        if number is not None:
            points.add(step, _Point(at, number, source))


def fold_curves(parts: Sequence[LoggedPart], directory: Path, metrics: Collection[str] = ()) -> Curves:
    """Return the curves of attempts that continue each other, whose files are in `directory`/K; no names: of all.

    Slow.
    """
    folds = [fold for _, _, fold in fold_parts(parts, directory, None, lambda: CurveFold(metrics))][::-1]
    names = sorted({name for fold in folds for name in fold.found})
    return {name: curve for name in names if len(curve := _join([fold.found.get(name) for fold in folds]))}


def _join(parts: Sequence[_Points | None]) -> Curve:
    """Return the curve of all attempts; of two points with the same step, that of the later attempt."""
    stepped: dict[int, _Point] = {}
    free: list[_Point] = []
    for points in filter(None, parts):
        stepped |= points.stepped
        one_file = len({point.source for point in points.free}) <= 1
        free += points.free if one_file else sorted(points.free, key=itemgetter(0))
    steps = sorted(stepped)
    ordered = [*(stepped[step] for step in steps), *free]
    values, times = [point.value for point in ordered], [point.at for point in ordered]
    return Curve([*steps, *[None] * len(free)], values, times)
