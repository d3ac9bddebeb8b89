"""Plots as lines of text: by plotext, and heat maps by our own."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from monkey.cli.terminal.text import Terminal, flatten_text, lay_out_table
from monkey.errors import MonkeyError
from monkey.metrics.summary import is_finite
from monkey.origin import hint_install
from monkey.plan.text.short_texts import cut_text, measure_width
from monkey.results.plots.line_plot import LinePlot
from monkey.results.plots.parallel_plot import ParallelPlot, tabulate_heat

#: Columns of a plot that goes to no terminal, and of the widest; lines of the highest.
_WIDTH, _MOST_COLUMNS, _MOST_LINES = 100, 160, 30
#: What draws lines of letters on a terminal without UTF-8.
_PLAIN = str.maketrans("┌┐└┘─│┤├┬┴┼", "++++-|+++++")
#: Marks of the lines where there is neither colour nor braille to tell them apart.
_MARKS = "*o+x#@%&"
#: Colours of the lines where there are any.
_COLOURS = ("blue+", "orange+", "green+", "red+", "magenta+", "cyan+", "gray+", "yellow+")
#: Cells of a heat map, from no job to all of the row.
_SHADES, _PLAIN_SHADES = " ░▒▓█", " .:+#"
#: Columns of a cell, and of the heading of the means, at most.
_CELL, _HEAD = 3, 14
#: Which columns of a heat map are never cut; and how many there are in any case: parameter, value and cells.
_RIGHT, _LEAST = (False, False, True, True, True), 3


def draw_lines(plot: LinePlot, to: Terminal) -> list[str]:
    """Return the plot as lines. Raises MonkeyError where plotext is not installed."""
    plt = _import_plotext()
    width = min(to.width or _WIDTH, _MOST_COLUMNS)
    plt.clear_figure()
    plt.theme("clear")
    plt.plotsize(width, min(max(width // 3, 12), _MOST_LINES))
    plt.title(flatten_text(plot.title))
    plt.xlabel(flatten_text(plot.x_name))
    if plot.log_x:
        plt.xscale("log")
    if plot.ticks:
        plt.xticks(list(plot.ticks), [flatten_text(text) for text in plot.ticks.values()])
    named: list[str] = []
    for at, line in reversed(list(enumerate(plot.lines))):  # the best are drawn last: over the others
        mark, colour = _choose_mark(plot, at, to), _COLOURS[at % len(_COLOURS)] if to.colour else None
        (plt.plot if plot.joined else plt.scatter)(line.x, line.y, marker=mark, color=colour)
        sample = "━━" if mark == "braille" else mark * 2
        named.insert(0, f"  {plt.colorize(sample, colour) if colour else sample} {flatten_text(line.name)}")
    drawn = plt.build() if to.colour else plt.uncolorize(plt.build())
    lines = [line.rstrip() for line in (drawn.translate(_PLAIN) if to.ascii else drawn).splitlines()]
    # Not plotext's own legend, which lies over the beginning of curves.
    return [*lines, *(named if len(plot.lines) > 1 or plot.joined else ())]


def _choose_mark(plot: LinePlot, at: int, to: Terminal) -> str:
    if not plot.joined:
        return "*" if to.ascii else "●"
    return "braille" if not to.ascii and (to.colour or len(plot.lines) == 1) else _MARKS[at % len(_MARKS)]


def _import_plotext() -> Any:
    try:
        import plotext
    except ModuleNotFoundError as exc:
        what = "plots in a terminal need plotext, which is not installed"
        raise MonkeyError(what, hint=hint_install("plot")) from exc
    return plotext


def draw_heat(plot: ParallelPlot, to: Terminal) -> list[str]:
    """Return the heat map of a plot as lines; its cells are as wide as the terminal has room for."""
    shades = _PLAIN_SHADES if to.ascii else _SHADES
    cell = _CELL
    while cell > 1 and to.width and max(map(measure_width, _lay_out_heat(plot, shades, cell, Terminal()))) > to.width:
        cell -= 1
    amounts = ("any", "25%", "50%", "75%")
    legend = ", ".join(f"{cell * shade}\xa0{text}" for shade, text in zip(shades[1:], amounts, strict=True))
    said = wrap(f"Shares of a row's jobs, from: {legend}", to.width or _MOST_COLUMNS)
    return [*_lay_out_heat(plot, shades, cell, to), *(line.replace("\xa0", " ") for line in said)]


def _lay_out_heat(plot: ParallelPlot, shades: str, cell: int, to: Terminal) -> list[str]:
    """Return a line a row. In a narrow terminal names are cut, then means and counts are left out; cells never are."""
    order = "BEST TO WORST" if plot.ranks else "LEAST TO GREATEST"
    heads = ["PARAMETER", "VALUE", "JOBS", cut_text(flatten_text(f"MEAN {plot.metric}"), _HEAD), order]
    rows = _fill_heat(plot, shades, cell, len(order))
    heads[-1] = order.ljust(len(rows[0][-1]))
    lines = lay_out_table(heads, rows, to, right=_RIGHT)
    for kept in range(len(heads) - 1, _LEAST - 1, -1):
        if len(lines) == 1 + len(rows):
            break
        for each in (heads, *rows):
            del each[-2]
        lines = lay_out_table(heads, rows, to, right=_RIGHT[:kept])
    return lines


def _fill_heat(plot: ParallelPlot, shades: str, cell: int, width: int) -> list[list[Any]]:
    """Return the rows of the map; the last column is at least `width` wide."""
    rows: list[list[Any]] = []
    before = ""
    for row in tabulate_heat(plot):
        bar = "".join(_shade(share, shades) * cell for share in row.shares)
        mean = row.mean if is_finite(row.mean) else None
        rows.append([row.name if row.name != before else "", row.value, row.jobs, mean, f"|{bar}|".ljust(width)])
        before = row.name
    return rows


def _shade(share: float, shades: str) -> str:
    return shades[0] if not share else shades[min(1 + int(share * (len(shades) - 1)), len(shades) - 1)]
