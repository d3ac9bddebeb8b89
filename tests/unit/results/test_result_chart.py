"""Charts that mermaid draws. Its own parser needs Node, so a grammar as narrow as what is written here judges them."""

from __future__ import annotations

import re

from monkey.results.result_chart import draw_chart
from tests.unit.plan.making import grid
from tests.unit.results.sample_results import JOBS, Job, accs, made, metric

_TEXT = r'"[\w .,:=+/()-]+"'
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
#: A part of the grammar of xychart in mermaid 11: numbers have no exponents, and texts no quotes.
_GRAMMAR = re.compile(
    "xychart-beta\n"
    f"    title {_TEXT}\n"
    f"    x-axis {_TEXT} \\[(?P<labels>{_TEXT}(?:, {_TEXT})*)\\]\n"
    f"    y-axis {_TEXT} (?P<low>{_NUMBER}) --> (?P<high>{_NUMBER})\n"
    f"    (?:line|bar) \\[(?P<values>{_NUMBER}(?:, {_NUMBER})*)\\]\n?"
)


def check_chart(text: str) -> tuple[list[str], list[float]]:
    """Hold that it is a chart; return its labels and values."""
    found = _GRAMMAR.fullmatch(text)
    assert found, text
    labels = re.findall(r'"([^"]+)"', found["labels"])
    values = [float(value) for value in found["values"].split(", ")]
    assert len(labels) == len(values) == len(set(labels)), "mermaid draws those of one label in one place"
    assert float(found["low"]) < min(values) and max(values) < float(found["high"])
    return labels, values


def test_the_best_of_each_value_is_drawn_and_seeds_are_no_axis() -> None:
    text = draw_chart(made(JOBS, accs(0.5, 0.75, 0.25, 1e-7)))
    assert check_chart(text) == (["0.1", "0.2"], [0.75, 0.25]) and 'title "acc by lr"' in text


def test_words_are_bars_and_many_draws_are_ranks() -> None:
    words = draw_chart(made(grid(optimizer=["sgd", "adam"]), accs(0.5, 1e-7)))
    assert check_chart(words) == (["sgd", "adam"], [0.5, 1e-7]) and "    bar [0.5, 0.0000001]" in words
    drawn = draw_chart(made(grid(lr=[at / 7 for at in range(60)]), accs(*map(float, range(60)))))
    labels, values = check_chart(drawn)
    assert labels[:2] == ["1", "2"] and values[:2] == [59, 58] and len(values) == 24


def test_values_that_look_alike_stay_apart() -> None:
    names = ["a" * 40 + "1", "a" * 40 + "2", "é中@"]
    labels, _ = check_chart(draw_chart(made(grid(name=names), accs(1.0, 2.0, 3.0))))
    assert labels == [f"{'a' * 9}..{'a' * 7}1", f"{'a' * 9}..{'a' * 7}2", "é中_"]
    signs, _ = check_chart(draw_chart(made(grid(name=["a@", "a#"]), accs(1.0, 2.0))))
    assert signs == ["a_ (1)", "a_ (2)"]


def test_what_is_no_result_is_not_drawn() -> None:
    seen = [*accs(1.0, float("nan"), None), Job(state="failed", metrics={"acc": metric(9.0)})]
    assert draw_chart(made(JOBS, seen)) == ""
    assert draw_chart(made(JOBS, accs(1.0, 1e300, 1e-300, 10**400))) == ""
    assert check_chart(draw_chart(made(JOBS, accs(1.0, 1.0, 1.0, 1.0))))[1] == [1.0, 1.0]
