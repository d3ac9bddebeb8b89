"""Rows by machine, facts and signature; and columns that are the same in all rows."""

from __future__ import annotations

from math import nan

import pytest

from monkey.errors import MonkeyError
from monkey.results.export import format_results_csv, serialize_row
from monkey.results.result_filter import add_facts, drop_unchanged, filter_results, needs_facts
from tests.unit.results.sample_results import JOBS, Job, accs, made, metric, read

SEEN = [
    Job("failed", reason="exit code 1", exit_code=1, log_tail=("KeyError: 'a'",), host="gpu1", facts="aa"),
    Job("failed", reason="exit code 1", exit_code=1, log_tail=("ValueError",), host="gpu1", facts="bb"),
    Job(metrics={"acc": metric(0.5)}, host="gpu2", facts="bb"),
    Job("queued"),
]
FACTS = {
    "aa": {"cpu": "A", "cpus": 8, "lock": ["numpy==2.4.0"], "variables": {"OMP_NUM_THREADS": "1"}},
    "bb": {"cpu": "B", "cpus": 64, "gpus": ["H100"]},
}


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("host == 'gpu1'", 2),
        ("host != 'gpu1'", 1),
        ("facts.cpu == 'B'", 2),
        ("facts.cpus > 8 and state == 'failed'", 1),
        ("'numpy==2.4.0' in facts.lock", 1),
        ("'H100' in facts.gpus", 2),
        ("facts.variables.OMP_NUM_THREADS == '1'", 1),
        ("facts.driver == 'x'", 0),
    ],
)
def test_where_names_machine_and_facts(condition: str, rows: int) -> None:
    assert len(filter_results(add_facts(made(JOBS, SEEN), FACTS), condition).rows) == rows


def test_facts_are_read_only_for_a_condition_that_names_them() -> None:
    assert needs_facts("facts.cpu == 'x'") and not needs_facts("lr == 1") and not needs_facts(None)
    with pytest.raises(MonkeyError, match=r"unknown parameter 'facts\.cpuu'"):
        filter_results(add_facts(made(JOBS, SEEN), FACTS), "facts.cpuu == 1")


def test_where_takes_a_signature_with_or_without_quotes() -> None:
    results = made(JOBS, SEEN)
    first, second = (results.sign(at) for at in (0, 1))
    assert first != second and results.sign(2) == ""
    for said in (
        f"signature == {first}",
        f"signature=='{first}'",
        f'signature in ["{first}"]',
        f"signature != {second}",
    ):
        assert [row.job for row in filter_results(results, said).rows] == [results.table.ids[0]], said


@pytest.mark.parametrize("text", ["123456", "3e1234", "00000e"])
def test_a_signature_that_looks_like_a_number_is_text(text: str) -> None:
    assert not filter_results(made(JOBS, SEEN), f"signature == {text}").order
    jobs = [{"signature": text, "lr": 1}, {"signature": "b", "lr": 1}]
    assert not filter_results(made(jobs, accs(1, 2)), f"signature == '{text}'").order, "ours keep their names"
    assert len(filter_results(made(jobs, accs(1, 2)), f"parameter.signature == '{text}'").rows) == 1
    inside = made([{"x": f"signature == {text}"}, {"x": "b"}], accs(1, 2))
    assert len(filter_results(inside, f'x == "signature == {text}"').rows) == 1, "text in quotes stays"


def test_only_what_differs_is_left() -> None:
    seen = [
        Job(metrics={"acc": metric(at), "same": metric(1), "odd": metric(nan), "sometimes": metric(2)})
        for at in range(3)
    ]
    results = drop_unchanged(
        made(JOBS, [*seen, Job(metrics={"acc": metric(7), "same": metric(1), "odd": metric(nan)})])
    )
    assert results.parameters == ("lr", "seed") and results.metrics == ("acc", "sometimes")
    assert list(read(format_results_csv(results))[0])[:6] == ["job", "state", "lr", "seed", "acc", "sometimes"]
    row = serialize_row(results.rows[0])
    assert (
        row["parameters"] == {"lr": 0.2, "seed": 1} and row["metrics"] == {"acc": 7} and set(row["summary"]) == {"acc"}
    )


def test_what_differs_is_asked_of_the_chosen_rows_and_the_ranking_metric_stays() -> None:
    results = made(JOBS, accs(1, 1, 1, 1))
    chosen = drop_unchanged(filter_results(results, "lr == 0.1"))
    assert chosen.parameters == ("seed",) and chosen.metrics == ("acc",) and chosen.varying == {"seed"}
    assert drop_unchanged(results.choose([])).parameters == ()


def test_signatures_do_not_change_with_what_is_hidden() -> None:
    jobs = [{"model": "resnet", "x": x} for x in range(2)]
    results = made(jobs, [Job("failed", reason="exit code 1", log_tail=(f"no resnet {x}",)) for x in range(2)])
    assert {row.signature for row in drop_unchanged(results).rows} == {results.sign(0)}
