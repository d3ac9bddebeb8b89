"""The values of one step: what metrics were where another was at its best, or at a step that a user names."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import NamedTuple

from monkey.metrics.summary import find_best_value, is_finite
from monkey.results.curves.curve import Curve
from monkey.results.curves.curve_reader import CurveReader
from monkey.results.result_rows import Results, rank_places


class StepValue(NamedTuple):
    """A value, and the step that it was logged at; None for one without a step."""

    value: float
    step: int | None


def find_value(curve: Curve, step: int | None) -> StepValue | None:
    """Return the value at a step, or the last one before it; None where the first one came later.

    Without a step, or of a curve that has none, it is the last value.
    """
    steps = [each for each in curve.steps if each is not None]
    if step is None or not steps:
        return StepValue(curve.values[-1], None)
    at = bisect_right(steps, step) - 1
    return StepValue(curve.values[at], steps[at]) if at >= 0 else None


async def read_step_values(
    results: Results, reader: CurveReader, adopted: Mapping[str, str], step: int | None = None
) -> Results:
    """Return the chosen jobs with the values of one step: of that one, or else of each job's best value.

    `adopted`: jobs to those whose results they adopt. By `step`, jobs are ranked again. Curves are read only of jobs
    whose last values are of another step. Raises StoreError, OSError.
    """
    columns = {name: list(column) for name, column in results.values.items()}
    steps: dict[str, list[int | None]] = {name: [None] * len(results.seen) for name in columns}
    moments = [step] * len(results.seen)
    if step is None:
        moments = [_find_best_step(results, at) for at in range(len(results.seen))]
    missing: dict[int, list[str]] = {}
    for at in results.order:
        moment = moments[at]
        for name, entry in results.seen[at].metrics.items():
            if name in results.last:
                steps[name][at] = entry.get("step")
            elif name == results.metric and step is None:
                steps[name][at] = moment
            elif moment is not None and entry.get("step") == moment:
                steps[name][at] = moment
                columns[name][at] = _make_finite(entry.get("last"))
            elif moment is not None:
                missing.setdefault(at, []).append(name)
    jobs = [adopted.get(results.table.ids[at], results.table.ids[at]) for at in missing]
    places = iter(missing)
    async for _, curves in reader.read_many(jobs):
        at = next(places)
        for name in missing[at]:
            # A record that is not in the store leaves the last value, and that is said.
            if name not in curves:
                continue
            found = find_value(curves[name], moments[at])
            columns[name][at] = None
            if found is not None:
                columns[name][at] = _make_finite(found.value)
                steps[name][at] = found.step
    read = replace(results, values=columns, moments=moments, steps=steps)
    return read if step is None else read.choose(_rank(read))


def _find_best_step(results: Results, at: int) -> int | None:
    best = find_best_value(results.seen[at].metrics.get(results.metric or "", {}), results.maximize)
    return best.step if best else None


def _make_finite(value: float | None) -> float:
    return value if value is not None and is_finite(value) else nan


def _rank(results: Results) -> Sequence[int]:
    if results.metric is None:
        return results.order
    chosen = set(results.order)
    values = results.values.get(results.metric, [None] * len(results.seen))
    return [at for at in rank_places(values, results.counts, maximize=results.maximize) if at in chosen]
