"""`--where` chooses the rows that SQLite chooses: a metric that a job did not log is SQL's NULL."""

from __future__ import annotations

import random
import sqlite3
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from monkey.results.result_filter import filter_results
from tests.unit.plan.making import grid
from tests.unit.results.sample_results import Job, made, metric

JOBS = grid(depth=[1, 2, 3], lr=[0.001, 0.5, 2.0], opt=["sgd", "adam"], seed=range(3))
NUMBERS = ["depth", "lr", "loss", "acc"]


def draw_metrics() -> list[dict[str, float]]:
    """Return what each job logged: some lack one metric, or both."""
    dice = random.Random(0)
    values = [0.5, 1.0, 2.0, 3.0, -1.0]
    return [{name: dice.choice(values) for name in ("loss", "acc") if dice.random() < 0.75} for _ in JOBS]


METRICS = draw_metrics()
RESULTS = made(JOBS, [Job(metrics={name: metric(value) for name, value in each.items()}) for each in METRICS])
#: A pair of texts: as a condition of ours, and in SQL.
Pair = tuple[str, str]
numbers: st.SearchStrategy[Pair] = st.recursive(
    (st.sampled_from(NUMBERS) | st.sampled_from(["0", "1", "2", "0.5", "-1"])).map(lambda text: (text, text)),
    lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(
        lambda parts: (
            f"({parts[0][0]} {parts[1]} {parts[2][0]})",
            f"({parts[0][1]} {parts[1]} {parts[2][1]})",
        )
    ),
    max_leaves=3,
)
OPERATORS = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "==": "=", "!=": "<>"}
comparisons: st.SearchStrategy[Pair] = st.tuples(numbers, st.sampled_from(sorted(OPERATORS)), numbers).map(
    lambda parts: (
        f"{parts[0][0]} {parts[1]} {parts[2][0]}",
        f"{parts[0][1]} {OPERATORS[parts[1]]} {parts[2][1]}",
    )
)
chains: st.SearchStrategy[Pair] = st.tuples(numbers, numbers, numbers).map(
    lambda parts: (
        f"{parts[0][0]} < {parts[1][0]} <= {parts[2][0]}",
        f"({parts[0][1]} < {parts[1][1]} AND {parts[1][1]} <= {parts[2][1]})",
    )
)
choices: st.SearchStrategy[Pair] = st.sampled_from(
    [
        ("depth in [1, 3]", "depth IN (1, 3)"),
        ("loss not in [0.5, 2]", "loss NOT IN (0.5, 2)"),
        ("opt == 'sgd'", "opt = 'sgd'"),
        ("opt != 'sgd'", "opt <> 'sgd'"),
        ("opt in ['adam', 'x']", "opt IN ('adam', 'x')"),
    ]
)
conditions: st.SearchStrategy[Pair] = st.recursive(
    comparisons | chains | choices,
    lambda inner: (
        inner.map(lambda pair: (f"not ({pair[0]})", f"NOT ({pair[1]})"))
        | st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda parts: (
                f"({parts[0][0]}) {parts[1]} ({parts[2][0]})",
                f"({parts[0][1]}) {parts[1].upper()} ({parts[2][1]})",
            )
        )
    ),
    max_leaves=4,
)


def fill_database() -> sqlite3.Connection:
    """Return a database with a table of the same jobs."""
    made = sqlite3.connect(":memory:")
    made.execute("CREATE TABLE jobs (at INTEGER, depth INTEGER, lr REAL, opt TEXT, loss REAL, acc REAL)")
    rows: list[tuple[Any, ...]] = [
        (at, job["depth"], job["lr"], job["opt"], told.get("loss"), told.get("acc"))
        for at, (job, told) in enumerate(zip(JOBS, METRICS, strict=True))
    ]
    made.executemany("INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?)", rows)
    return made


@settings(max_examples=150)
@given(conditions)
def test_a_condition_chooses_the_rows_that_sqlite_chooses(pair: Pair) -> None:
    ours, sql = pair
    database = fill_database()
    try:
        expected = {at for (at,) in database.execute(f"SELECT at FROM jobs WHERE {sql}")}
    finally:
        database.close()
    assert set(filter_results(RESULTS, ours).order) == expected, ours
