"""Parallel coordinates: all parameters of all jobs with the metric, and the heat map that a terminal can show of them.

The heat map has a row for each value of each parameter, and columns of jobs from the best to the worst. A cell says
which share of the row's jobs is in the column: a value that makes jobs good is dark on the left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from monkey.errors import MonkeyError
from monkey.results.plots.plot_axis import PlotAxis, make_axis, select_jobs
from monkey.results.result_rows import Results

#: Columns of the heat map, and rows of one parameter, at most.
COLUMNS, ROWS = 10, 8


@dataclass(frozen=True)
class ParallelPlot:
    """The parameters that vary, as axes, and the metric; jobs are ordered by it, the best one first."""

    metric: str
    axes: Sequence[PlotAxis]
    values: Sequence[float]
    #: Does the metric rank jobs? Else the first has the least value, and need not be the best.
    ranks: bool


@dataclass(frozen=True)
class HeatRow:
    """The jobs with one value of a parameter, or with those of a range."""

    name: str
    value: str
    jobs: int
    #: Mean of the metric.
    mean: float
    #: For each column the share of these jobs.
    shares: Sequence[float]


def make_parallel_plot(results: Results, metric: str) -> ParallelPlot:
    """Return the plot of all jobs that count. Raises MonkeyError where there is nothing to draw."""
    ranking = results.columns.metrics.get(results.metric or "")
    metric, places, values = select_jobs(results, metric)
    ranks = metric == ranking
    order = sorted(range(len(values)), key=values.__getitem__, reverse=ranks and results.maximize)
    places, values = [places[at] for at in order], [values[at] for at in order]
    axes = [make_axis(results, name, places) for name in results.parameters if name in results.varying]
    if not axes:
        raise MonkeyError("no parameter of the sweep varies", hint="`--kind curves` draws its jobs")
    return ParallelPlot(metric, axes, values, ranks)


def tabulate_heat(plot: ParallelPlot) -> list[HeatRow]:
    """Return the rows of the heat map, parameter after parameter."""
    return [row for axis in plot.axes for row in _rows(plot, axis)]


def _rows(plot: ParallelPlot, axis: PlotAxis) -> list[HeatRow]:
    count = len(plot.values)
    columns = min(COLUMNS, count)
    rows = []
    for text, low, high in _ranges(axis):
        jobs = [at for at, place in enumerate(axis.places) if place is not None and low <= place <= high]
        of_column = [0] * columns
        for at in jobs:
            of_column[at * columns // count] += 1
        if jobs:
            mean = sum(plot.values[at] / len(jobs) for at in jobs)
            rows.append(HeatRow(axis.name, text, len(jobs), mean, [share / len(jobs) for share in of_column]))
    return rows


def _ranges(axis: PlotAxis) -> list[tuple[str, float, float]]:
    """Return the values of an axis, or where there are many of a number, ranges of as many jobs each."""
    if axis.ticks:
        return [(text, place, place) for place, text in axis.ticks.items()]
    there = sorted(place for place in axis.places if place is not None)
    values = sorted(set(there))
    if len(values) <= ROWS:
        return [(repr(value).removesuffix(".0"), value, value) for value in values]
    edges = [there[part * len(there) // ROWS] for part in range(ROWS)]
    ranges = []
    for start, after in zip(edges, [*edges[1:], None], strict=True):
        inside = [value for value in values if value >= start and (after is None or value < after)]
        if inside:
            ranges.append((f"{inside[0]:.3g} … {inside[-1]:.3g}", inside[0], inside[-1]))
    return ranges
