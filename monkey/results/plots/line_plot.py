"""Plots of x and y: curves of jobs over their steps, or a parameter against the metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from monkey.errors import MonkeyError
from monkey.results.curves.curve import POINTS, Curve, reduce_curve
from monkey.results.plots.plot_axis import PlotAxis, make_axis, select_jobs
from monkey.results.result_rows import Results

#: Ratio of the greatest to the least value from which on a positive parameter has a logarithmic axis.
_LOG_RATIO = 10.0


@dataclass(frozen=True)
class PlotLine:
    """Points that are drawn alike, and their name; NaN is a gap."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class LinePlot:
    """Lines, or only points, over two axes."""

    title: str
    x_name: str
    lines: Sequence[PlotLine]
    #: Are points joined?
    joined: bool = True
    log_x: bool = False
    #: Place on the x axis to its text, where x is no number.
    ticks: Mapping[float, str] = field(default_factory=dict)


def make_curves_plot(metric: str, curves: Sequence[tuple[str, Curve]], points: int = POINTS) -> LinePlot:
    """Return the plot of curves, each with its name."""
    placed = [(name, reduce_curve(curve, points).place()) for name, curve in curves]
    stepped = any(step is not None for _, curve in curves for step in curve.steps)
    lines = [PlotLine(name, x, y) for name, (x, y) in placed]
    return LinePlot(metric, "step" if stepped else "record", lines)


def make_scatter_plot(results: Results, metric: str, parameter: str | None) -> LinePlot:
    """Return the metric of all jobs that count against a parameter: that which is named, or which says most.

    Raises MonkeyError where there is nothing to draw.
    """
    metric, places, values = select_jobs(results, metric)
    axis = make_axis(results, parameter or _find_parameter(results), places)
    known = [(x, y) for x, y in zip(axis.places, values, strict=True) if x is not None]
    x, y = [x for x, _ in known], [y for _, y in known]
    log = not axis.ticks and min(x, default=0) > 0 and max(x) / min(x) >= _LOG_RATIO
    return LinePlot(f"{metric} by {axis.name}", axis.name, [PlotLine("", x, y)], False, log, axis.ticks)


def _find_parameter(results: Results) -> str:
    """Return the parameter that varies most, numbers before words, and repetitions last."""
    varying = [name for name in results.parameters if name in results.varying]
    if not varying:
        raise MonkeyError("no parameter of the sweep varies", hint="`--kind curves` draws its jobs")

    def rank(name: str) -> tuple[bool, bool, int]:
        values = results.table.columns[name].values
        return name not in results.repeats, PlotAxis.is_numeric(values), len(values)

    return max(varying, key=rank)
