"""What is drawn of curves, and of a parameter against the metric."""

from __future__ import annotations

import pytest

from monkey.errors import MonkeyError
from monkey.results.curves.curve import Curve
from monkey.results.plots.line_plot import make_curves_plot, make_scatter_plot
from tests.unit.plan.making import grid
from tests.unit.results.sample_results import Job, accs, made, metric


def test_curves_keep_their_names_and_few_points() -> None:
    long = Curve(range(10_000), [float(n % 7) for n in range(10_000)], [0.0] * 10_000)
    plot = make_curves_plot("loss", [("lr=1", long), ("lr=2", Curve([1], [2.0], [0.0]))], points=100)
    assert [line.name for line in plot.lines] == ["lr=1", "lr=2"] and plot.x_name == "step" and plot.joined
    assert 50 < len(plot.lines[0].x) <= 100 and list(plot.lines[1].y) == [2.0]
    assert make_curves_plot("loss", [("a", Curve([None] * 3, [1, 2, 3], [0.0] * 3))]).x_name == "record"


def test_a_scatter_has_jobs_that_count_over_the_parameter_that_varies_most() -> None:
    jobs = grid(lr=[0.001, 0.01, 0.1], width=[8, 16], seed=range(5))
    seen = [Job(metrics={"acc": metric(n / 100)}) for n in range(28)]
    seen += [Job(metrics={"acc": metric(None)}), Job("failed", metrics={"acc": metric(0.99)})]
    plot = make_scatter_plot(made(jobs, seen), "acc", None)
    assert plot.x_name == "lr" and plot.log_x and not plot.joined, "a seed says nothing"
    [line] = plot.lines
    assert sorted(line.y) == [n / 100 for n in range(28)]
    assert sorted({*line.x}) == [0.001, 0.01, 0.1]
    assert not make_scatter_plot(made(jobs, seen), "acc", "width").log_x
    with pytest.raises(MonkeyError, match="--parameter: there is no 'wdith'") as caught:
        make_scatter_plot(made(jobs, seen), "acc", "wdith")
    assert "width" in str(caught.value.hint)


def test_words_have_places_of_their_own_and_a_missing_one_has_none() -> None:
    jobs = [{"optimizer": "sgd", "n": 1}, {"optimizer": "adam"}, {"optimizer": "sgd", "n": 2}, {"other": 1}]
    plot = make_scatter_plot(made(jobs, accs(0.1, 0.2, 0.3, 0.4)), "acc", "optimizer")
    [line] = plot.lines
    found = sorted((y, plot.ticks[x]) for x, y in zip(line.x, line.y, strict=True))
    assert found == [(0.1, "sgd"), (0.2, "adam"), (0.3, "sgd")]


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(MonkeyError, match="no job that counts has a value of 'acc' yet"):
        make_scatter_plot(made([{"lr": 1}], [Job("running", metrics={"acc": metric(1.0)})]), "acc", "lr")
    with pytest.raises(MonkeyError, match="no parameter of the sweep varies"):
        make_scatter_plot(made([{"lr": 1}], accs(0.5)), "acc", None)
