"""Passes over the rows of results: as many for many rows as for few. A pass for each row makes the time quadratic."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from monkey.cli.terminal.text import dump_json
from monkey.results.export import format_groups_csv, format_json_rows, format_results_csv, serialize_row
from monkey.results.groups import group_results
from monkey.results.result_filter import filter_results
from monkey.results.result_rows import Results, gather_results
from monkey.results.result_table import tabulate_groups, tabulate_results
from monkey.spec.job.recipe import SweepSettings
from tests.unit.plan.making import grid, table
from tests.unit.results.sample_results import Job

NAMES = ("lr", "seed")


class Counted(tuple[int, ...]):
    """Places that count the passes over them."""

    passes = 0

    def __iter__(self) -> Iterator[int]:
        self.passes += 1
        return super().__iter__()


def _groups_table(results: Results) -> object:
    return tabulate_groups(group_results(results, NAMES), NAMES, results, everything=True)


def _groups_csv(results: Results) -> object:
    return list(format_groups_csv(group_results(results, NAMES), NAMES, results))


FORMS: dict[str, Callable[[Results], object]] = {
    "csv": lambda results: list(format_results_csv(results)),
    "json": lambda results: list(format_json_rows(map(serialize_row, results.rows), dump_json)),
    "table": lambda results: tabulate_results(results, everything=True),
    "groups' table": _groups_table,
    "groups' csv": _groups_csv,
    "where": lambda results: filter_results(results, "acc > 0 and cpus > 0"),
}


def passes(form: Callable[[Results], object], size: int) -> int:
    """Return how many passes a form makes over so many rows, each of which is a group of its own."""
    rows = table(grid(lr=[0.1], seed=range(size)))
    one = Job(metrics={"acc": {"last": 0.5}}, usage={"cpus": 1.0})
    results = gather_results(rows, SweepSettings(metric="acc", maximize=True), dict.fromkeys(rows.ids, one))
    places = Counted(results.order)
    form(results.choose(places))
    assert places.passes, "it reads the rows"
    return places.passes


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_passes_do_not_grow_with_the_rows(form: Callable[[Results], object]) -> None:
    assert passes(form, 100) == passes(form, 50)
