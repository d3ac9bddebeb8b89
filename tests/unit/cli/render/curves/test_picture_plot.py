"""Pictures: files of the kind that their name says, with the names of what they show."""

from __future__ import annotations

import base64
import html
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from monkey.cli.render.curves.picture_plot import check_picture_path, write_picture
from monkey.errors import MonkeyError
from monkey.results.plots.line_plot import LinePlot, PlotLine, make_scatter_plot
from monkey.results.plots.parallel_plot import make_parallel_plot
from tests.unit.plan.making import grid
from tests.unit.results.sample_results import accs, made

CURVES = LinePlot("$\\frac$", "step", [PlotLine("_a", [1.0, 2.0], [1.0, float("nan")]), PlotLine("$b", [1.0], [2.0])])


@pytest.mark.needs("matplotlib")
def test_files_are_what_their_names_say(tmp_path: Path) -> None:
    results = made(grid(lr=[0.01, 0.1], kind=["x", "$y"]), accs(0.1, 0.2, 0.3, 0.4))
    plots = {
        "curves": CURVES,
        "scatter": make_scatter_plot(results, "acc", "kind"),
        "parallel": make_parallel_plot(results, "acc"),
    }
    for name, plot in plots.items():
        write_picture(plot, tmp_path / f"{name}.png")
        write_picture(plot, tmp_path / f"{name}.svg")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n")
        assert len(ElementTree.parse(tmp_path / f"{name}.svg").findall(".//{*}path")) > 10
    assert "<!-- kind -->" in (tmp_path / "parallel.svg").read_text(), "the axes have names"


@pytest.mark.needs("matplotlib")
def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(MonkeyError, match="cannot write"):
        write_picture(CURVES, tmp_path / "missing" / "x.png")
    with pytest.raises(MonkeyError, match=r"ends in \.png or \.svg or \.html"):
        check_picture_path(tmp_path / "x.pdf")


@pytest.mark.needs("matplotlib")
def test_a_page_holds_the_picture_and_no_name_is_markup(tmp_path: Path) -> None:
    hostile = '<script>alert(1)</script> -->" onload=x'
    plot = LinePlot(hostile, "step", [PlotLine(hostile, [1.0, 2.0], [1.0, 2.0])])
    write_picture(plot, tmp_path / "x.html")
    write_picture(plot, tmp_path / "x.svg")
    page = (tmp_path / "x.html").read_text()
    [picture] = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert len(ElementTree.fromstring(base64.b64decode(picture)).findall(".//{*}path")) > 10
    assert page.count(html.escape(hostile)) == 2 and "<script" not in page
