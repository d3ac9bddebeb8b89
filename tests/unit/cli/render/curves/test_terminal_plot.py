"""Plots in a terminal: within its width, in letters that it has, and free of what names would steer it with."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from monkey.cli.render.curves.terminal_plot import draw_heat, draw_lines
from monkey.cli.terminal.text import Terminal
from monkey.plan.text.short_texts import measure_width
from monkey.results.plots.line_plot import LinePlot, PlotLine
from monkey.results.plots.parallel_plot import make_parallel_plot
from tests.unit.plan.making import grid
from tests.unit.results.sample_results import accs, made

HOSTILE = "lr\x1b]0;title\x07\n\x9b2J=1"
STEPS = [float(n) for n in range(50)]
CURVES = LinePlot("lo\x1b[2Jss", "step", [PlotLine(HOSTILE, STEPS, STEPS), PlotLine("b", STEPS, STEPS[::-1])])
POINTS = LinePlot(
    "loss by kind", "kind", [PlotLine("", [0.0, 1.0], [2.0, 3.0])], False, ticks={0.0: "a\x1b[2J", 1.0: "b"}
)


@pytest.mark.needs("plotext")
@pytest.mark.parametrize("plot", [CURVES, POINTS], ids=["curves", "points"])
@pytest.mark.parametrize("width", [40, 80, 300, None])
def test_a_plot_fits_the_terminal_and_obeys_no_name(plot: LinePlot, width: int | None) -> None:
    for to in (Terminal(width), Terminal(width, ascii=True), Terminal(width, colour=True)):
        lines = draw_lines(plot, to)
        plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
        assert not any(re.search(r"[\x00-\x1f\x7f-\x9f]", line) for line in plain)
        assert max(map(measure_width, plain)) <= (width or 100)
        assert to.colour or plain == lines
        assert not to.ascii or all(line.isascii() for line in lines if HOSTILE[:2] not in line)


@pytest.mark.needs("plotext")
def test_a_rising_curve_rises_and_a_gap_is_left_out() -> None:
    rising = LinePlot("loss", "step", [PlotLine("a", [1.0, 2.0, 3.0], [1.0, float("nan"), 3.0])])
    lines = draw_lines(rising, Terminal(60, ascii=True))
    marked = [at for at, line in enumerate(lines[:-1]) if "*" in line]
    assert len(marked) == 2 and lines[marked[0]].index("*") > lines[marked[1]].index("*")
    assert lines[-1] == "  ** a"


@pytest.mark.needs("plotext")
def test_the_first_curve_lies_over_those_after_it_and_is_named_first() -> None:
    over = LinePlot("loss", "step", [PlotLine("best", STEPS, STEPS), PlotLine("worse", STEPS, STEPS)])
    *drawn, first, second = draw_lines(over, Terminal(60, ascii=True))
    assert (first, second) == ("  ** best", "  oo worse")
    assert any("*" in line for line in drawn) and not any("o" in line for line in drawn[1:-1])


def test_a_heat_map_needs_no_library() -> None:
    jobs = grid(lr=[1, 2], kind=["x", "y"])
    plot = make_parallel_plot(made(jobs, accs(0.1, 0.2, 0.3, 0.4)), "acc")
    head, *lines, legend = draw_heat(plot, Terminal(80))
    assert head.split("  ")[-1].strip() == "BEST TO WORST" and len(lines) == 4
    assert lines[1].endswith("|▓▓▓▓▓▓      |") and "25%" in legend
    assert all(line.isascii() for line in draw_heat(plot, Terminal(80, ascii=True)))


@pytest.mark.parametrize("width", [50, 55, 60, 80])
def test_a_narrow_terminal_gets_narrow_cells_and_no_cut_ones(width: int) -> None:
    plot = make_parallel_plot(made(grid(lr=[*range(1, 11)], kind=["x", "y"]), accs(*map(float, range(20)))), "acc")
    lines = [line for line in draw_heat(plot, Terminal(width)) if "|" in line]
    assert len(lines) == 10
    assert all(line.endswith("|") and measure_width(line) <= width for line in lines)
    assert {len(line.split("|")[1]) % 10 for line in lines} == {0}


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_heat_map_stays_a_map_where_it_is_narrow(width: int) -> None:
    """A line a row, none beyond the terminal: names are cut, then numbers are left out."""
    jobs = grid(learning_rate_of_the_optimizer=[1, 2], model=["google/vit-large-patch16-224-in21k", "x"])
    plot = make_parallel_plot(made(jobs, accs(0.1, 0.2, 0.3, 0.4)), "acc")
    for ranks in (True, False):
        plot = replace(plot, metric="validation/top1_accuracy", ranks=ranks)
        head, *lines = draw_heat(plot, Terminal(width))
        assert max(map(measure_width, [head, *lines])) <= width
        assert head.startswith("PARAM") and head.endswith("BEST TO WORST" if ranks else "LEAST TO GREATEST")
        assert [line.endswith("|") for line in lines] == [at < 4 for at in range(len(lines))]
        assert "".join(lines[4:]).startswith("Shares of a row's jobs, from: ")
        assert ("MEAN" in head) is (width > 40) and "google/" in lines[2]
