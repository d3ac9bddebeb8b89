"""Parameters and metrics that are called like our own columns: each value is found once, in every form."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from monkey.results.export import format_groups_csv, format_results_csv, serialize_row
from monkey.results.formats.arrow_table import encode_parquet, make_arrow_table
from monkey.results.formats.latex_table import format_latex, format_latex_groups
from monkey.results.groups import find_parameters, group_results
from monkey.results.plots.line_plot import make_scatter_plot
from monkey.results.plots.parallel_plot import make_parallel_plot
from monkey.results.result_filter import filter_results
from monkey.results.result_rows import Results
from monkey.results.result_table import tabulate_groups, tabulate_results
from tests.unit.results.sample_results import Job, accs, made, metric

USED = ("cpus", "memory_bytes", "gpu_percent", "gpu_memory_bytes")
#: As docs/metrics.md lists them.
OURS = ("job", "state", "counts", "diverged", "seconds", "attempt", *USED, "reason", "host", "signature")
#: Columns of tables for people, and of groups.
SHOWN = ("time", "CPUs", "peak GB", "GPU %", "GPU peak GB", "n", "jobs")
NAMES = (*OURS, *SHOWN)


def make_results() -> Results:
    """Two jobs whose parameters and metrics have each of our names, and each value is another."""
    jobs = [{name: 1_000 * job + at for at, name in enumerate(NAMES)} | {"acc": job} for job in (1, 2)]
    seen = [
        Job(
            state,
            metrics={name: metric(100_000 * job + at) for at, name in enumerate(NAMES)} | {"acc": metric(0.5 * job)},
            usage=dict.fromkeys(USED, 7.0),
            host="gpu1",
            reason="why",
        )
        for job, state in ((1, "succeeded"), (2, "failed"))
    ]
    return made(jobs, seen, maximize=False)


def spell(kind: str, name: str, others: Sequence[str] = OURS) -> str:
    return f"{kind}.{name}" if name in others else name


def check(row: dict[str, Any], results: Results) -> None:
    """Check that each value of the first job is under its name, as the rule of the documentation has it."""
    assert row["job"] == results.table.ids[0] and row["state"] == "succeeded" and row["host"] == "gpu1"
    assert float(row["seconds"]) == 2.5 and int(row["attempt"]) == 1 and float(row["cpus"]) == 7
    for at, name in enumerate(NAMES):
        assert int(row[spell("parameter", name)]) == 1_000 + at, name
        # All of these are names of parameters, too.
        assert int(row[f"metric.{name}"]) == 100_000 + at, name
    assert int(row["acc"]) == 1 and float(row["metric.acc"]) == 0.5


def test_csv() -> None:
    results = make_results()
    head, first, _ = csv.reader(io.StringIO("".join(format_results_csv(results)), newline=""))
    assert Counter(head).most_common(1)[0][1] == 1, "no header comes twice"
    check(dict(zip(head, first, strict=True)), results)


def test_json_keeps_them_in_objects_of_their_own() -> None:
    row = json.loads(json.dumps(serialize_row(make_results().rows[0])))
    for at, name in enumerate(NAMES):
        assert row["parameters"][name] == 1_000 + at and row["metrics"][name] == 100_000 + at


@pytest.mark.needs("pyarrow")
@pytest.mark.needs("pandas")
def test_parquet_and_pandas(tmp_path: Path) -> None:
    import pandas
    import pyarrow.parquet

    results = make_results()
    path = tmp_path / "r.parquet"
    path.write_bytes(encode_parquet(results))
    check(pyarrow.parquet.read_table(path).to_pylist()[0], results)
    for frame in (pandas.read_parquet(path), make_arrow_table(results).to_pandas()):
        check(frame.iloc[0].to_dict(), results)
    text = io.StringIO("".join(format_results_csv(results)), newline="")
    check(pandas.read_csv(text).iloc[0].to_dict(), results)


def test_tables_for_people() -> None:
    results = make_results()
    for everything in (True, False):
        table = tabulate_results(results, everything=everything)
        assert len({*table.names}) == len(table.names)
        row = dict(zip(table.names, table.rows[0], strict=True))
        for at, name in enumerate(NAMES):
            shown = spell("parameter", name, [each for each in NAMES if each not in ("n", "jobs")])
            assert row[shown] == str(1_000 + at), name
        assert row["state"] == "succeeded" and row["time"] == "2.5s" and row["metric.acc"] == "0.5"
        assert f"\\textbf{{{row['metric.acc']}}}" in "\n".join(format_latex(results, everything=everything))
        for at, name in enumerate(NAMES):
            assert not everything or row[f"metric.{name}"] == str(100_000 + at)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prefix", ["", "parameter."])
def test_groups(name: str, prefix: str) -> None:
    results = make_results()
    names = find_parameters([prefix + name, "acc"], results)
    groups = group_results(results, names)
    head, first, _ = csv.reader(io.StringIO("".join(format_groups_csv(groups, names, results)), newline=""))
    assert Counter(head).most_common(1)[0][1] == 1
    row, at = dict(zip(head, first, strict=True)), NAMES.index(name)
    assert row[spell("parameter", name, (*OURS, "jobs"))] == str(1_000 + at) and row["acc"] == "1"
    assert row[f"metric.{name}.mean"] == str(100_000.0 + at) and row["metric.acc.mean"] == "0.5" and row["jobs"] == "1"
    table = tabulate_groups(groups, names, results)
    shown = dict(zip(table.names, table.rows[0], strict=True))
    assert len(shown) == len(table.names) and shown["n"] == "1" and shown["metric.acc"] == "0.5"
    assert shown[spell("parameter", name, (*OURS, "n"))] == str(1_000 + at)
    assert r"\textbf{0.5}" in "\n".join(format_latex_groups(groups, names, results))


@pytest.mark.parametrize(("at", "name"), list(enumerate(NAMES)))
def test_conditions(at: int, name: str) -> None:
    if not name.isidentifier():
        return
    results = make_results()

    def chosen(condition: str) -> list[str]:
        return [row.job for row in filter_results(results, condition).rows]

    first = [results.table.ids[0]]
    assert chosen(f"parameter.{name} == {1_000 + at}") == first == chosen(f"metric.{name} == {100_000 + at}")
    if name not in OURS:
        assert chosen(f"{name} == {1_000 + at}") == first, "what a bare name means stays where it means one thing"
    assert chosen("state == 'succeeded' and seconds == 2.5 and metric.acc == 0.5") == first
    assert chosen("acc == 1") == first, "a parameter goes before a metric"


def test_what_a_signature_is_compared_with() -> None:
    results = made([{"signature": 123456}, {"signature": 1}], accs(1, 2))
    assert len(filter_results(results, "parameter.signature == 123456").rows) == 1


def test_names_with_a_prefix_are_taken_only_once() -> None:
    jobs = [{"seconds": 1, "parameter.seconds": 2, "acc": 3, "metric.acc": 4}] * 2
    seen = [Job(metrics={"acc": metric(5), "metric.acc": metric(6), "metric.metric.acc": metric(7)})] * 2
    head, row, _ = csv.reader(io.StringIO("".join(format_results_csv(made(jobs, seen))), newline=""))
    named = dict(zip(head, row, strict=True))
    assert len(named) == len(head)
    assert (named["parameter.seconds"], named["parameter.parameter.seconds"]) == ("2", "1")
    assert (named["acc"], named["metric.acc"], named["metric.metric.acc"]) == ("3", "4", "7")
    assert {"5", "6"} < {*row}


def test_a_metric_of_a_group_is_apart_from_a_parameter_of_its_mean() -> None:
    results = made([{"acc.mean": 1}, {"acc.mean": 2}], accs(0.5, 0.25))
    head, row, _ = csv.reader(
        io.StringIO("".join(format_groups_csv(group_results(results, ["acc.mean"]), ["acc.mean"], results)), newline="")
    )
    named = dict(zip(head, row, strict=True))
    assert named["acc.mean"] == "1" and named["metric.acc.mean"] == "0.5"


def test_plots() -> None:
    jobs = [{"acc": n, "seconds": 10 * n, "metric": "a"} for n in range(3)]
    results = made(jobs, [Job(metrics={"acc": metric(0.5 * n)}) for n in range(3)])
    for spelling in ("seconds", "parameter.seconds"):
        plot = make_scatter_plot(results, "metric.acc", spelling)
        assert plot.x_name == "parameter.seconds" and plot.title == "metric.acc by parameter.seconds"
        assert sorted(plot.lines[0].x) == [0, 10, 20] and sorted(plot.lines[0].y) == [0, 0.5, 1]
    parallel = make_parallel_plot(results, "acc")
    assert [axis.name for axis in parallel.axes] == ["acc", "parameter.seconds"] and parallel.metric == "metric.acc"
    assert list(parallel.values) == [1, 0.5, 0] and parallel.ranks


def test_last_values_beside_a_best_one_say_so_until_they_are_read() -> None:
    seen = [Job(metrics={"acc": metric(0.5, 0.9), "loss": metric(2.5), "flops": metric(7)})] * 2
    jobs = [{"lr": 0.1}, {"lr": 0.2}]
    for take, loss in {"best": "loss (last)", "last": "loss"}.items():
        results = made(jobs, seen, take=take, last=["flops"])
        assert tabulate_results(results).names[1:4] == ("acc", "flops", loss)
        groups = group_results(results, ["lr"])
        assert tabulate_groups(groups, ["lr"], results).names[1:4] == ("acc", "flops", loss)
        assert make_scatter_plot(results, "loss", "lr").title == f"{loss} by lr"
        assert loss in next(iter(format_results_csv(results))).splitlines()[0].split(",")
        assert len(filter_results(results, "loss == 2.5 and metric.loss == 2.5").rows) == 2
