"""Curves for the page: those of jobs that have ended are read once, those of running ones as their agents ship them."""

from __future__ import annotations

import asyncio
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple

from monkey.apply.inspect.attempt_records import find_owner
from monkey.protocol.status.store_snapshot import JobState, SweepView
from monkey.results.curves.curve import Curve, select_points
from monkey.results.curves.curve_reader import READERS, CurveReader
from monkey.web.live_store import LiveStore

#: Points that are kept of jobs that have ended: 16 bytes each.
_KEPT_POINTS = 8_000_000


class DrawnCurve(NamedTuple):
    """One metric of a job as it is drawn; NaN where a value is not finite."""

    steps: array[float]
    values: array[float]

    def serialize(self, points: int) -> dict[str, Any]:
        """Return at most `points` points as JSON, values to seven digits: more are not seen."""
        places: Sequence[int] = select_points(self.values, points)
        steps = [self.steps[at] for at in places]
        values = [self.values[at] for at in places]
        return {
            "steps": spell_steps(steps),
            "values": [float(f"{value:.7g}") if isfinite(value) else None for value in values],
            "logged": len(self.values),
        }


def spell_steps(steps: Sequence[float]) -> Any:
    """Return steps as JSON: those at equal distances, as most are, by their first, distance and number."""
    if len(steps) > 2 and len({later - earlier for earlier, later in pairwise(steps)}) == 1:
        return {"from": int(steps[0]), "by": int(steps[1] - steps[0]), "count": len(steps)}
    return [int(step) for step in steps]


class JobCurves(NamedTuple):
    """The curves of one job, and whether more may come."""

    curves: dict[str, DrawnCurve]
    growing: bool


class CurveCache:
    """The curves of a project's jobs, as far as they were asked for."""

    def __init__(self, live: LiveStore) -> None:
        """Have read nothing yet."""
        self._reader = CurveReader(live.world.at, live.world.keys, live.shipped)
        self._gate = asyncio.Semaphore(READERS)
        self._ended: OrderedDict[tuple[str, int], JobCurves] = OrderedDict()
        self._points = 0

    async def read(self, view: SweepView, job: str) -> JobCurves:
        """Return a job's curves over all its attempts. Raises StoreError, OSError."""
        seen, owner = view.view(job), find_owner(view, job)
        growing = seen.state in (JobState.RUNNING, JobState.FROZEN)
        key = owner, seen.attempt
        if not growing and key in self._ended:
            self._ended.move_to_end(key)
            return self._ended[key]
        async with self._gate:
            curves = await self._reader.read(owner) if seen.attempt else {}
        found = JobCurves({name: _draw(curve) for name, curve in curves.items()}, growing)
        if not growing and seen.ended is not None:
            self._keep(key, found)
        return found

    def _keep(self, key: tuple[str, int], found: JobCurves) -> None:
        self._ended[key] = found
        self._points += _count_points(found)
        while self._points > _KEPT_POINTS and len(self._ended) > 1:
            self._points -= _count_points(self._ended.popitem(last=False)[1])


def _draw(curve: Curve) -> DrawnCurve:
    steps, values = curve.place()
    return DrawnCurve(array("d", steps), array("d", values))


def _count_points(found: JobCurves) -> int:
    return sum(len(curve.steps) for curve in found.curves.values())
