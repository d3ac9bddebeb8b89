"""An axis of a plot: one parameter, and where each job stands on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from monkey.errors import MonkeyError
from monkey.metrics.influx.influx_points import convert_to_float
from monkey.plan.text.describe import make_value_format
from monkey.results.result_rows import Results, find_named
from monkey.spec.job.job_table import ABSENT


@dataclass(frozen=True)
class PlotAxis:
    """One parameter: a place for each job that is drawn; None for a job without it."""

    name: str
    places: Sequence[float | None]
    #: Place to text, of a parameter whose values are not all numbers; else empty.
    ticks: Mapping[float, str]

    @staticmethod
    def is_numeric(values: Sequence[Any]) -> bool:
        """Are these all numbers that a float can hold?"""
        return all(type(value) in (int, float) and convert_to_float(value) is not None for value in values)


def make_axis(results: Results, name: str, places: Sequence[int]) -> PlotAxis:
    """Return the axis of a parameter for the jobs at these places. Raises MonkeyError for an unknown one."""
    columns = results.columns.parameters
    name = find_named(name, results.parameters, columns, "parameter", "--parameter")
    column = results.table.columns[name]
    index = [column.index[at] for at in places]
    if PlotAxis.is_numeric(column.values):
        return PlotAxis(columns[name], [None if at == ABSENT else float(column.values[at]) for at in index], {})  # type: ignore[arg-type]  # numbers
    text = make_value_format(column.values)
    used = sorted({*index} - {ABSENT})
    ticks = {float(x): text(column.values[at]) for x, at in enumerate(used)}
    order = {at: float(x) for x, at in enumerate(used)}
    return PlotAxis(columns[name], [order.get(at) for at in index], ticks)


def select_jobs(results: Results, metric: str) -> tuple[str, list[int], list[float]]:
    """Return the metric's column, the places of jobs that count and have a value of it, and these values.

    Raises MonkeyError where there is none.
    """
    metric = find_named(metric, results.metrics, results.columns.metrics, "metric", "--metric")
    column = results.values[metric]
    found: dict[int, float] = {}
    for at in results.order:
        logged = column[at]
        if results.counts[at] and logged is not None and (value := convert_to_float(logged)) is not None:
            found[at] = value
    if not found:
        hint = "jobs count once they have succeeded; `--kind curves` draws running ones"
        raise MonkeyError(f"no job that counts has a value of {metric!r} yet", hint=hint)
    return results.columns.metrics[metric], list(found), list(found.values())
