"""A sweep's results as a chart of mermaid, which forges draw in comments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from monkey.metrics.summary import is_finite
from monkey.plan.text.describe import make_value_format
from monkey.results.result_rows import Results
from monkey.spec.job.job_table import ABSENT, ParameterColumn

#: Values up to which a parameter is an axis of the chart, and jobs that are shown where none is.
_MAX_POINTS = 24
#: Characters of a name or a value in the chart.
_MAX_LABEL = 20
#: What may stand between quotes: all else could be a directive, a comment, an entity or the quote's end to mermaid.
_NOT_PLAIN = re.compile(r"[^\w .,:=+/()-]")
#: Values that decimals of a bearable length tell apart: the chart's grammar knows no exponents.
_SMALLEST, _LARGEST = 1e-9, 1e12


class _Axis(NamedTuple):
    name: str
    labels: list[str]
    values: list[float]
    #: Is what lies between two of its values on a way from the one to the other?
    numeric: bool


def draw_chart(results: Results) -> str:
    """Return the metric by the parameter that varies, or else of the best jobs, as mermaid; "" for too few values."""
    places = [at for at in results.order if results.counts[at] and _can_draw(_value(results, at))]
    if results.metric is None or len(places) < 2:
        return ""
    axis = _find_axis(results, places) or _rank(results, places)
    low, high = min(axis.values), max(axis.values)
    pad = (high - low) * 0.1 or abs(high) * 0.1 or 1.0
    metric, kind = _label(results.metric), "line" if axis.numeric else "bar"
    return "\n".join(
        [
            "xychart-beta",
            f'    title "{metric} by {_label(axis.name)}"',
            f'    x-axis "{_label(axis.name)}" [{", ".join(f"{chr(34)}{text}{chr(34)}" for text in axis.labels)}]',
            f'    y-axis "{metric}" {_spell(low - pad)} --> {_spell(high + pad)}',
            f"    {kind} [{', '.join(map(_spell, axis.values))}]",
        ]
    )


def _value(results: Results, at: int) -> float | None:
    column = results.values.get(results.metric) if results.metric is not None else None
    return column[at] if column is not None else None


def _can_draw(value: float | None) -> bool:
    return value is not None and is_finite(value) and (value == 0 or _SMALLEST < abs(value) < _LARGEST)


def _find_axis(results: Results, places: Sequence[int]) -> _Axis | None:
    """Return the best value for each value of the parameter that has most, numbers before words; None for none."""
    found = None
    for name in results.parameters:
        column = results.table.columns[name]
        used = {column.index[at] for at in places} - {ABSENT}
        if name in results.repeats or not 2 <= len(used) <= _MAX_POINTS:
            continue
        rank = (_is_numeric(column), len(used))
        if found is None or rank > found[0]:
            found = rank, name
    return _make_axis(results, found[1], places) if found else None


def _make_axis(results: Results, name: str, places: Sequence[int]) -> _Axis:
    column = results.table.columns[name]
    best: dict[int, float] = {}
    for at in places:  # the best come first
        value = _value(results, at)
        if column.index[at] != ABSENT and value is not None:
            best.setdefault(column.index[at], float(value))
    numeric = _is_numeric(column)
    at_all = sorted(best, key=column.values.__getitem__) if numeric else sorted(best)  # type: ignore[arg-type]  # numbers
    text = make_value_format(column.values, _MAX_LABEL - 2)
    labels = _keep_apart([_label(text(column.values[at])) for at in at_all])
    return _Axis(name, labels, [best[at] for at in at_all], numeric)


def _rank(results: Results, places: Sequence[int]) -> _Axis:
    values = [float(value) for at in places[:_MAX_POINTS] if (value := _value(results, at)) is not None]
    return _Axis("rank", [str(rank) for rank in range(1, len(values) + 1)], values, numeric=True)


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
