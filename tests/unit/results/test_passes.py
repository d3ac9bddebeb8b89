"""Passes over the rows of results: as many for many rows as for few. A pass for each row makes the time quadratic."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from monkey.results.export import format_groups_csv, format_results_csv
from monkey.results.groups import group_results
from monkey.results.result_rows import ResultRow, Results, filter_results
from monkey.results.result_table import tabulate_groups, tabulate_results

NAMES = ("lr", "seed")


class Counted(tuple[ResultRow, ...]):
    """Rows that count the passes over them."""

    passes = 0

    def __iter__(self) -> Iterator[ResultRow]:
        self.passes += 1
        return super().__iter__()


def _groups_table(results: Results) -> object:
    return tabulate_groups(group_results(results, NAMES), NAMES, results, everything=True)


def _groups_csv(results: Results) -> object:
    return format_groups_csv(group_results(results, NAMES), NAMES, results.metrics)


FORMS: dict[str, Callable[[Results], object]] = {
    "csv": format_results_csv,
    "table": lambda results: tabulate_results(results, everything=True),
    "groups' table": _groups_table,
    "groups' csv": _groups_csv,
    "where": lambda results: filter_results(results, "acc > 0 and cpus > 0"),
}


def passes(form: Callable[[Results], object], size: int) -> int:
    """Return how many passes a form makes over so many rows, each of which is a group of its own."""
    rows = Counted(
        ResultRow(f"{i:016x}", "succeeded", {"lr": 0.1, "seed": i}, {"acc": 0.5}, {}, usage={"cpus": 1.0})
        for i in range(size)
    )
    form(Results(rows, "acc", maximize=True, parameters=NAMES, varying=frozenset(["seed"])))
    assert rows.passes, "it reads the rows"
    return rows.passes


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_passes_do_not_grow_with_the_rows(form: Callable[[Results], object]) -> None:
    assert passes(form, 100) == passes(form, 50)
