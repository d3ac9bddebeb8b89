"""Charts that mermaid draws. Its own parser needs Node, so a grammar as narrow as what is written here judges them."""

from __future__ import annotations

import random
import re
from itertools import chain
from typing import Any, NamedTuple

import pytest

from monkey.results.result_chart import ResultChart, draw_chart
from tests.unit.plan.making import grid
from tests.unit.results.sample_results import JOBS, Job, accs, made, metric

_TEXT = r'"[\w .,:=+/()-]+"'
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
#: A part of the grammar of xychart in mermaid 11: numbers have no exponents, and texts no quotes.
_GRAMMAR = re.compile(
    r'%%\{init: \{"themeVariables": \{"xyChart": \{"plotColorPalette": "(?:#[0-9a-f]{6}(?:, )?){3}"\}\}\}\}%%\n'
    "xychart-beta\n"
    f"    title {_TEXT}\n"
    f"    x-axis {_TEXT} \\[(?P<labels>{_TEXT}(?:, {_TEXT})*)\\]\n"
    f"    y-axis {_TEXT} (?P<low>{_NUMBER}) --> (?P<high>{_NUMBER})\n"
    f"    (?P<kind>line|bar) \\[(?P<values>{_NUMBER}(?:, {_NUMBER})*)\\]"
    f"(?:\n    line \\[(?P<lows>{_NUMBER}(?:, {_NUMBER})*)\\]\n    line \\[(?P<highs>{_NUMBER}(?:, {_NUMBER})*)\\])?\n?"
)


class ReadChart(NamedTuple):
    kind: str
    labels: list[str]
    values: list[float]
    #: The ends of the intervals; empty without any.
    lows: list[float]
    highs: list[float]


def check_chart(chart: ResultChart | str | None) -> ReadChart:
    """Hold that it is a chart; return what it shows."""
    assert chart is not None
    text = chart if isinstance(chart, str) else chart.text
    found = _GRAMMAR.fullmatch(text)
    assert found, text
    labels = re.findall(r'"([^"]+)"', found["labels"])
    rows = [
        list(map(float, (found[name] or "").split(", "))) if found[name] else [] for name in ("values", "lows", "highs")
    ]
    assert len(labels) == len(rows[0]) == len(set(labels)), "mermaid draws those of one label in one place"
    assert float(found["low"]) < min(chain(*rows)) and max(chain(*rows)) < float(found["high"])
    if isinstance(chart, ResultChart):
        assert bool(rows[1]) is ("t interval" in chart.note)
    return ReadChart(found["kind"], labels, *rows)


@pytest.mark.needs("pandas")
@pytest.mark.needs("scipy")
@pytest.mark.parametrize("layers", [[12, 24, 48], ["small", "large", "huge"]])
def test_means_are_drawn_with_n_and_intervals_as_pandas_and_scipy_have_them(layers: list[Any]) -> None:
    """One value has twice the jobs of the other, and thus the best one by chance: the means say otherwise."""
    import pandas
    from scipy import stats

    draws = random.Random(12)
    jobs = [*grid(layers=layers[:1], lr=range(16)), *grid(layers=layers[1:], lr=range(8))]
    jobs = [{**job, "lr": float(at)} for at, job in enumerate(jobs)]
    values = [draws.gauss(0.5 if job["layers"] == layers[0] else 0.6, 0.2) for job in jobs]
    seen = [*accs(*values[:-1]), Job(state="failed", metrics={"acc": metric(9.0)})]
    made_of = made([{**job, "width": 8} for job in jobs], seen)
    frame = pandas.DataFrame(jobs).assign(acc=values)[:-1]
    grouped = frame.groupby("layers", sort=False)["acc"]
    half = stats.t.ppf(0.975, grouped.count() - 1) * grouped.sem()
    chart = check_chart(draw_chart(made_of))
    assert chart.labels == [f"{value} (n {n})" for value, n in grouped.count().items()]
    assert chart.values == pytest.approx(list(grouped.mean()), rel=1e-5)
    assert chart.lows == pytest.approx(list(grouped.mean() - half), rel=1e-5, abs=1e-5)
    assert chart.highs == pytest.approx(list(grouped.mean() + half), rel=1e-5, abs=1e-5)
    assert chart.kind == ("line" if layers[0] == 12 else "bar")


def test_seeds_are_no_axis() -> None:
    chart = draw_chart(made(JOBS, accs(0.5, 0.75, 0.25, 1e-7)))
    assert check_chart(chart)[1:3] == (["0.1 (n 2)", "0.2 (n 2)"], [0.625, 0.125])
    assert chart is not None and 'title "mean acc by lr"' in chart.text


def test_one_job_each_has_no_interval_and_some_with_and_some_without_are_no_chart() -> None:
    words = check_chart(draw_chart(made(grid(optimizer=["sgd", "adam"]), accs(0.5, 1e-7))))
    assert words == ("bar", ["sgd (n 1)", "adam (n 1)"], [0.5, 1e-7], [], [])
    assert draw_chart(made([{"lr": 1, "seed": 0}, {"lr": 1, "seed": 1}, {"lr": 2, "seed": 0}], accs(1, 2, 3))) is None
    assert draw_chart(made(grid(lr=[at / 7 for at in range(60)]), accs(*map(float, range(60))))) is None


def test_values_that_look_alike_stay_apart() -> None:
    names = ["a" * 40 + "1", "a" * 40 + "2", "é中@"]
    labels = check_chart(draw_chart(made(grid(name=names), accs(3.0, 2.0, 1.0)))).labels
    assert labels == [f"{'a' * 9}..{'a' * 7}1 (n 1)", f"{'a' * 9}..{'a' * 7}2 (n 1)", "é中_ (n 1)"]
    signs = check_chart(draw_chart(made(grid(name=["a@", "a#"]), accs(2.0, 1.0)))).labels
    assert signs == ["a_ (1) (n 1)", "a_ (2) (n 1)"]


def test_what_is_no_result_is_not_drawn() -> None:
    seen = [*accs(1.0, float("nan"), None), Job(state="failed", metrics={"acc": metric(9.0)})]
    assert draw_chart(made(JOBS, seen)) is None
    assert draw_chart(made(JOBS, accs(1.0, 1e300, 1e-300, 10**400))) is None
    assert check_chart(draw_chart(made(JOBS, accs(1.0, 1.0, 1.0, 1.0)))).values == [1.0, 1.0]
