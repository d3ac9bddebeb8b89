"""Plots as files: PNG, SVG and HTML, by matplotlib."""

from __future__ import annotations

import base64
import html
import io
from pathlib import Path
from typing import Any

from monkey.atomic_write import write_named_file
from monkey.errors import MonkeyError
from monkey.origin import hint_install
from monkey.results.plots.line_plot import LinePlot
from monkey.results.plots.parallel_plot import ParallelPlot
from monkey.results.plots.plot_axis import PlotAxis

#: Endings of files that can be written.
ENDINGS = (".png", ".svg", ".html")
#: A page with a picture in it. Of an image a browser runs no script, whatever names it has.
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:">
<title>{title}</title>
<img alt="{title}" src="data:image/svg+xml;base64,{picture}">
</html>
"""
#: Lines up to which each has its name in a legend.
_NAMED = 12
#: Texts beside an axis of parallel coordinates.
_LABELS = 10
#: Behind such a text, so that lines do not cross it out.
_BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8}
#: Inches, and dots per inch.
_SIZE, _DPI = (8.0, 4.8), 150


def check_picture_path(path: Path) -> None:
    """Raise MonkeyError unless the file's name says what to write."""
    if path.suffix.lower() not in ENDINGS:
        raise MonkeyError(f"-o {str(path)!r}: expected a name that ends in {' or '.join(ENDINGS)}")


def write_picture(plot: LinePlot | ParallelPlot, path: Path) -> None:
    """Draw the plot into a file. Raises MonkeyError where matplotlib is not installed, or the file can't be written."""
    figure, axes = _make_figure()
    if isinstance(plot, LinePlot):
        _draw_lines(axes, plot)
    else:
        _draw_parallel(figure, axes, plot)
    kind, drawn = path.suffix.lower()[1:], io.BytesIO()
    picture = "svg" if kind == "html" else kind
    figure.savefig(drawn, format=picture, dpi=_DPI, metadata={"Date": None} if picture == "svg" else None)
    data = drawn.getvalue()
    if kind == "html":
        title = html.escape(plot.title if isinstance(plot, LinePlot) else plot.metric)
        data = _PAGE.format(title=title, picture=base64.b64encode(data).decode()).encode(errors="replace")
    try:
        write_named_file(path, data)
    except OSError as exc:
        raise MonkeyError(f"cannot write {str(path)!r}: {exc.strerror or exc}") from exc


def _make_figure() -> tuple[Any, Any]:
    try:
        # Not pyplot: it keeps figures, and looks for a display.
        from matplotlib.figure import Figure
    except ModuleNotFoundError as exc:
        raise MonkeyError("pictures need matplotlib, which is not installed", hint=hint_install("plot")) from exc
    figure = Figure(figsize=_SIZE, layout="constrained")
    return figure, figure.subplots()


def _draw_lines(axes: Any, plot: LinePlot) -> None:
    for at, line in enumerate(plot.lines):
        over = 3 - at / len(plot.lines)  # the best lie over the others; 2 is matplotlib's own
        if plot.joined:
            mark = "." if len(line.x) == 1 else None
            axes.plot(line.x, line.y, linewidth=1.2, label=_plain(line.name), marker=mark, zorder=over)
        else:
            axes.plot(line.x, line.y, "o", markersize=4, alpha=0.6, zorder=over)
    axes.set_title(_plain(plot.title))
    axes.set_xlabel(_plain(plot.x_name))
    axes.grid(alpha=0.3)
    if plot.log_x:
        axes.set_xscale("log")
    if plot.ticks:
        axes.set_xticks(list(plot.ticks), [_plain(text) for text in plot.ticks.values()])
    if plot.joined and 1 < len(plot.lines) <= _NAMED:
        axes.legend(fontsize="small")


def _draw_parallel(figure: Any, axes: Any, plot: ParallelPlot) -> None:
    import matplotlib
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    colours, norm = matplotlib.colormaps["viridis"], Normalize(min(plot.values), max(plot.values))
    scaled = [_scale(axis) for axis in plot.axes]
    for at in reversed(range(len(plot.values))):  # the best are drawn last
        axes.plot([column[at] for column in scaled], color=colours(norm(plot.values[at])), linewidth=1, alpha=0.6)
    axes.set_xticks(range(len(plot.axes)), [_plain(axis.name) for axis in plot.axes])
    axes.set_yticks([])
    axes.margins(x=0.08)
    for x, axis in enumerate(plot.axes):
        axes.axvline(x, color="0.6", linewidth=0.8)
        for y, text in _label(axis):
            axes.text(x, y, f" {_plain(text)}", fontsize=7, va="center", bbox=_BEHIND)
    figure.colorbar(ScalarMappable(norm, colours), ax=axes, label=_plain(plot.metric))


def _scale(axis: PlotAxis) -> list[float]:
    """Return the places of jobs from 0 to 1: by rank, so that values of any grid are apart."""
    values = sorted({place for place in axis.places if place is not None})
    share = {value: rank / max(len(values) - 1, 1) for rank, value in enumerate(values)}
    return [float("nan") if place is None else share[place] for place in axis.places]


def _label(axis: PlotAxis) -> list[tuple[float, str]]:
    """Return where on a scaled axis which texts stand: of many values, some."""
    values = sorted({place for place in axis.places if place is not None})
    last = len(values) - 1
    ranks = range(last + 1) if last < _LABELS else sorted({at * last // (_LABELS - 1) for at in range(_LABELS)})
    return [(rank / max(last, 1), axis.ticks.get(values[rank], f"{values[rank]:.4g}")) for rank in ranks]


def _plain(text: str) -> str:
    """Return a text in which matplotlib finds no formula, and no label to leave out."""
    return text.replace("$", r"\$").replace("\n", " ").removeprefix("_") if text else ""
