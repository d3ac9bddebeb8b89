"""Curves of jobs as texts: a line a curve for people, and all points for programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from monkey.apply.world.lookup import ChosenJob
from monkey.cli.render.parameter_text import find_job_parameters, format_parameters
from monkey.cli.terminal.sparkline import draw_sparkline, select_shown_values
from monkey.cli.terminal.text import Terminal, dump_json, lay_out_table
from monkey.plan.text.short_texts import measure_width
from monkey.results.curves.curve import Curve
from monkey.results.export import escape_formula

#: Columns of a sparkline: more show no more, fewer show nothing.
_WIDEST, _NARROWEST = 40, 8
#: The columns of `metrics --csv`.
CSV_HEAD = ("job", "metric", "step", "time", "value")


class JobCurve(NamedTuple):
    """One curve of a job."""

    chosen: ChosenJob
    metric: str
    curve: Curve


class CurveLine(NamedTuple):
    """One curve of a job, as far as a line shows it: of a large sweep, all points are too many to keep."""

    chosen: ChosenJob
    metric: str
    first: float
    last: float
    points: int
    #: The values that a sparkline of full width shows.
    shown: list[float]


def shorten_curve(one: JobCurve) -> CurveLine:
    """Return what a line shows of a curve."""
    values, shown = one.curve.values, select_shown_values(one.curve.place()[1], _WIDEST)
    return CurveLine(one.chosen, one.metric, values[0], values[-1], len(values), shown)


def format_curves(curves: Sequence[CurveLine], to: Terminal) -> list[str]:
    """Return a line a curve: its job, the parameters that vary, and a sparkline."""
    many = len({one.chosen.job for one in curves}) > 1
    rows = [[*(_start(one) if many else ()), one.metric, one.first, one.last, one.points] for one in curves]
    heads = [*(["JOB", "PARAMETERS"] if many else []), "METRIC", "FIRST", "LAST", "POINTS"]
    shown = [one.shown for one in curves]
    lines = add_sparklines(heads, rows, shown, to)
    if to.width is not None and any(shown) and _leave_room(heads, rows, to) < _NARROWEST:
        needed = to.width - _leave_room(heads, rows, to) + _NARROWEST
        lines.append(f"Curves do not fit: widen the terminal to {needed} columns, or run `monkey metrics JOB`.")
    return lines


def _leave_room(heads: Sequence[str], rows: Sequence[Sequence[Any]], to: Terminal) -> int:
    """Return the columns that a table leaves of a terminal's width for sparklines; negative where it is too wide."""
    used = max(map(measure_width, lay_out_table(heads, rows, Terminal())), default=0)
    return _WIDEST if to.width is None else min(to.width - used - 2, _WIDEST)


def _start(one: CurveLine) -> list[str]:
    revision = one.chosen.view.state.revision
    varying = revision.table.varying if revision else ()
    parameters = find_job_parameters(one.chosen.view, one.chosen.job)
    return [one.chosen.job, format_parameters({name: parameters[name] for name in parameters if name in varying})]


def add_sparklines(
    heads: Sequence[str], rows: Sequence[Sequence[Any]], curves: Sequence[Sequence[float]], to: Terminal
) -> list[str]:
    """Lay a table out with a last column of sparklines, as wide as the terminal leaves room for; none if too narrow."""
    lines = lay_out_table(heads, rows, to)
    if not any(curves):
        return lines
    width = _leave_room(heads, rows, to)
    if width < _NARROWEST:
        return lines
    drawn = [draw_sparkline(values, width, to) for values in curves]
    return lay_out_table([*heads, "CURVE"], [[*row, line] for row, line in zip(rows, drawn, strict=True)], to)


def serialize_curves(chosen: ChosenJob, curves: Iterable[JobCurve]) -> dict[str, Any]:
    """Return a job of `metrics --json`: its id, its parameters, and the columns of each curve."""
    return {
        "job": chosen.job,
        "parameters": find_job_parameters(chosen.view, chosen.job),
        "metrics": {
            one.metric: {
                "steps": list(one.curve.steps),
                "values": list(one.curve.values),
                "times": list(one.curve.times),
            }
            for one in curves
        },
    }


def format_curves_csv(curves: Iterable[JobCurve]) -> str:
    """Return the points of curves as lines of CSV, without the head."""
    out = io.StringIO()
    writer = csv.writer(out)
    for one in curves:
        job, metric = one.chosen.job, escape_formula(one.metric)
        for step, at, value in zip(one.curve.steps, one.curve.times, one.curve.values, strict=True):
            writer.writerow([job, metric, "" if step is None else step, repr(at), repr(value)])
    return out.getvalue()


def make_json_printer(say: Callable[[str], None]) -> tuple[Callable[[dict[str, Any]], None], Callable[[], None]]:
    """Return what prints a row of a JSON array, and what ends the array; `say` prints a text."""
    before = "[\n "

    def add(row: dict[str, Any]) -> None:
        nonlocal before
        say(before + dump_json(row))
        before = ",\n "

    return add, lambda: say("\n]\n" if before[0] == "," else "[]\n")
