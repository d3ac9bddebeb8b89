"""A sweep's results as a chart of mermaid, which forges draw in comments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from monkey.metrics.summary import is_finite
from monkey.plan.text.describe import make_value_format
from monkey.results.groups import MetricSpread, group_results
from monkey.results.result_rows import Results
from monkey.spec.job.job_table import ABSENT, ParameterColumn, ParameterValue

#: Values up to which a parameter is an axis of the chart.
_MAX_POINTS = 24
#: Characters of a name or a value in the chart.
_MAX_LABEL = 20
#: What may stand between quotes: all else could be a directive, a comment, an entity or the quote's end to mermaid.
_NOT_PLAIN = re.compile(r"[^\w .,:=+/()-]")
#: Values that decimals of a bearable length tell apart: the chart's grammar knows no exponents.
_SMALLEST, _LARGEST = 1e-9, 1e12
#: Means are strong, and the ends of intervals faint: mermaid's own first colour is hardly seen.
_COLOURS = '%%{init: {"themeVariables": {"xyChart": {"plotColorPalette": "#0969da, #8c959f, #8c959f"}}}}%%'
#: What stands below a chart.
_INTERVAL_NOTE = "Means over the n jobs that count (blue), and the ends of their 95 % t intervals (grey)."
_SINGLE_NOTE = "One job each: no interval is known."


class ResultChart(NamedTuple):
    """A chart, and the line that says what it shows."""

    text: str
    note: str


def draw_chart(results: Results) -> ResultChart | None:
    """Return the mean of the metric, with its interval and n, for each value of the parameter that varies most.

    These are the means of `--group-by`: the best job of a value says more of how many jobs it had. None for fewer than
    two values, and where some of the means have an interval and others none.
    """
    name = _find_axis(results)
    if name is None or results.metric is None:
        return None
    points = [
        _ChartPoint(made.parameters[name], made.metrics[results.metric])
        for made in group_results(results, [name])
        if name in made.parameters and results.metric in made.metrics
    ]
    column = results.table.columns[name]
    numeric = _is_numeric(column)
    order = sorted(column.values) if numeric else column.values  # type: ignore[type-var]  # numbers
    points.sort(key=lambda point: order.index(point.value))
    repeated = {point.spread.n > 1 for point in points}
    bounds = [bound for point in points for bound in (point.spread.min, point.spread.max, *point.ends)]
    if len(points) < 2 or len(repeated) > 1 or not all(map(_can_draw, bounds)):
        return None
    text = make_value_format([point.value for point in points], _MAX_LABEL - 2)
    labels = _keep_apart([_label(text(point.value)) for point in points])
    shown = [f'"{label} (n {point.spread.n})"' for label, point in zip(labels, points, strict=True)]
    low, high = min(bounds), max(bounds)
    pad = (high - low) * 0.1 or abs(high) * 0.1 or 1.0
    metric, kind = _label(results.metric), "line" if numeric else "bar"
    lines = [f"    {kind} [{', '.join(_spell(point.spread.mean) for point in points)}]"]
    if repeated == {True}:
        lines += [
            f"    line [{', '.join(map(_spell, ends))}]" for ends in zip(*(one.ends for one in points), strict=True)
        ]
    return ResultChart(
        "\n".join(
            [
                _COLOURS,
                "xychart-beta",
                f'    title "mean {metric} by {_label(name)}"',
                f'    x-axis "{_label(name)}" [{", ".join(shown)}]',
                f'    y-axis "{metric}" {_spell(low - pad)} --> {_spell(high + pad)}',
                *lines,
            ]
        ),
        _INTERVAL_NOTE if repeated == {True} else _SINGLE_NOTE,
    )


class _ChartPoint(NamedTuple):
    value: ParameterValue
    spread: MetricSpread

    @property
    def ends(self) -> tuple[float, ...]:
        """The ends of the interval of the mean; none without one."""
        half = self.spread.ci95
        return () if half is None else (self.spread.mean - half, self.spread.mean + half)


def _can_draw(value: float) -> bool:
    return value == 0 or _SMALLEST < abs(value) < _LARGEST


def _find_axis(results: Results) -> str | None:
    """Return the parameter to draw means by; None for none.

    Each of its values has several jobs that count, or, where no parameter is so, one each. Of such parameters, numbers
    go before words, and then the one with most values goes first.
    """
    found = None
    for name in results.parameters:
        column = results.table.columns[name]
        used = Counter(column.index[at] for at in results.order if results.counts[at])
        del used[ABSENT]
        repeated = {jobs > 1 for jobs in used.values()}
        if name in results.repeats or len(repeated) != 1 or not 2 <= len(used) <= _MAX_POINTS:
            continue
        rank = (True in repeated, _is_numeric(column), len(used))
        if found is None or rank > found[0]:
            found = rank, name
    return found[1] if found else None


def _is_numeric(column: ParameterColumn) -> bool:
    return all(type(value) in (int, float) and is_finite(value) for value in column.values)  # type: ignore[arg-type]  # these are


def _label(text: str) -> str:
    """Return a name or a value of which mermaid can make nothing but a text."""
    text = _NOT_PLAIN.sub("_", text.replace("\n", " ").replace("…", ".."))
    return (text if len(text) <= _MAX_LABEL else f"{text[: _MAX_LABEL - 2]}..") or "_"


def _keep_apart(labels: Sequence[str]) -> list[str]:
    """Number those that are alike: mermaid would draw them in one place."""
    return [
        label if labels.count(label) == 1 else f"{label} ({labels[: at + 1].count(label)})"
        for at, label in enumerate(labels)
    ]


def _spell(value: float) -> str:
    return format(Decimal(f"{value:.6g}"), "f")
