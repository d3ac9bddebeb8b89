"""What the dashboards show, on both versions of InfluxDB, is what `monkey results` tells of the same sweep."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import pytest

from monkey.metrics import names
from monkey.metrics.influx.influx_points import write_point
from monkey.metrics.influx.state_points import (
    JobAttempt,
    SweepJob,
    write_beginning_point,
    write_end_point,
    write_revision_point,
)
from monkey.protocol.entries import ClaimEnd, EndEntry
from monkey.spec.job.job_table import JobTable, ParameterColumn
from monkey.spec.job.recipe import SweepSettings
from monkey.spec.job.stop_when import StopRule
from tests import digits as sweep_of_digits
from tests import influx
from tests.digits import METRIC, Digits
from tests.grafana import NAMES, drawn, open_board, shown
from tests.influx import Database

#: Nanoseconds in a second.
S = 1_000_000_000
#: Panels that may tell nothing of `digits` and the machines here, by title, with the letter of their query.
SILENT = {("Jobs", letter) for letter in "CDEF"} | {("Attempts ended", letter) for letter in "BCD"}
#: Jobs of the other sweep.
OTHERS = [digits * 4 for digits in ("0123", "4567", "89ab")]
MACHINES = ("alpha", "beta", "gone")


@pytest.mark.slow
def test_what_is_shown_is_what_results_tells(require: Callable[[str], str], tmp_path: Path) -> None:
    """A sweep is run for real: its agent sends it to 2.x while it runs, and 1.8 is filled from the store afterwards."""
    for program in ("influxd", "influxd1", "grafana"):
        require(program)
    new, old = tmp_path / "new", tmp_path / "old"
    new.mkdir()
    old.mkdir()
    with influx.serve("influxd", new) as newer, influx.serve("influxd1", old) as older:
        sent, filled = newer.database(), older.database()
        digits = sweep_of_digits.run(tmp_path, sent)
        try:
            digits.backfill(filled)
        finally:
            digits.shop.kill_all()
        for database in (sent, filled):
            database.write(_other())
            a_sweep_is_shown_as_results_tells_it(database, digits)
            a_job_is_shown_as_results_tells_it(database, digits)
            a_sweep_that_went_wrong_is_shown_so(database)
            database.write(b"".join(_machines(digits.rows[0]["job"])))
            each_query_is_answered(database, digits)


def _other() -> bytes:
    """Return the points of a sweep: a job was given back, and failed with values not finite; another was stopped.

    A job of its first revision, whose result was the best, is no part of its second.
    """
    table = JobTable(OTHERS, {
        "alpha": ParameterColumn([1, 2, 3], [0, 1, 2]), "optimizer": ParameterColumn(["o'brien"], [0, 0, 0]),
    })  # fmt: skip
    settings = SweepSettings(metric="rmse", maximize=True, stop_when=[StopRule("rmse", above=3, sweep=True)])
    failed, running, stopped = (SweepJob("other", 2, table, row, settings) for row in range(3))
    gone = SweepJob("other", 1, JobTable(["f" * 16]), 0, settings)
    summary = {"rmse": {"last": 2.5, "min": 1.0, "max": 2.5, "nonfinite": 3}, "a/b.c": {"last": 1.0}}
    at, met = time.time() - 30, {"metric": "rmse", "value": 4.0}
    first, second, end = JobAttempt(1, "beta", "ana@lab"), JobAttempt(2, "alpha", "ben@lab"), EndEntry
    rmse = {"rmse": {"last": 0.5}}, {"rmse": {"last": 4.0, "min": 4.0, "max": 4.0}}, {"rmse": {"last": 99.0}}
    return b"".join(
        [
            write_end_point(failed, first, end(ClaimEnd.RELEASED, "", 0, reason="spot notice", at=at), 2),
            write_end_point(
                failed, second,
                end(ClaimEnd.FAILED, "", 0, reason="exit code 3", exit_code=3, seconds=4.5, metrics=summary, at=at + 1),
                4,
            ),
            write_end_point(running, first, end(ClaimEnd.STOPPED, "", 0, at=at - 1, metrics=rmse[0]), 0),
            write_beginning_point(running, first, at, 1),
            write_end_point(
                stopped, first,
                end(ClaimEnd.STOPPED, "", 0, reason="rmse > 3", seconds=2.0, metrics=rmse[1], at=at + 2, met=met), 2,
            ),
            write_end_point(gone, first, end(ClaimEnd.SUCCEEDED, "", 0, metrics=rmse[2], at=at - 9), 2),
            write_revision_point("other", 2, at - 5, 3),
            *(
                write_point(names.METRICS, {"sweep": "other", "job": OTHERS[0], "rank": str(rank), "host": "beta"},
                      {"a/b.c": step / 2 + rank, "step": step, "kept": True}, int(at * S) + step)
                for rank in (0, 1) for step in range(10)
            ),
        ]
    )  # fmt: skip


def _machines(job: str) -> Iterator[bytes]:
    """Return ten minutes of machines; one was last heard of five minutes ago, one has two GPUs, and runs the job."""
    now = time.time_ns()
    for host in MACHINES:
        tags = {names.HOST: host, names.FLEET_TAG: "lab", names.AGENT: f"{host}-agent"}
        for ago in range(300 if host == "gone" else 0, 600, 15):
            at, count = now - ago * S, (600 - ago) / 15
            told = {
                names.CPU_PERCENT: 25.0 if host == "alpha" else 75.0, names.MEMORY_PERCENT: 50.0, names.BUSY: 3.0,
                names.MEMORY_BYTES: 8e9, names.DISK_USED_PERCENT: 40.0, names.SLOTS: 4.0,
                names.DISK_READ_BYTES: 15e6 * count, names.DISK_WRITE_BYTES: 30e6 * count,
                names.NET_RECEIVED_BYTES: 45e6 * count, names.NET_SENT_BYTES: 60e6 * count,
            }  # fmt: skip
            yield write_point(names.SYSTEM, tags, told, at)
            gpu = {names.GPU_PERCENT: 90.0, names.GPU_MEMORY_BYTES: 7e10, names.GPU_POWER_WATTS: 650.0}
            if host == "alpha":
                for index in ("0", "1"):
                    yield write_point(
                        names.SYSTEM, {**tags, names.GPU: index}, {**gpu, names.GPU_TEMPERATURE: 71.0}, at
                    )
                used = {names.CPU_PERCENT: 130.0, names.MEMORY_BYTES: 2e9, **gpu, names.DISK_READ_BYTES: 15e6 * count}
                yield write_point(names.SYSTEM, {**tags, names.JOB: job}, {**used, names.DISK_WRITE_BYTES: 1.0}, at)


def about(digits: Digits, name: str) -> dict[str, str]:
    """Return what is chosen of a dashboard's variables."""
    if name == "fleet":
        return {}
    chosen = {"sweep": "digits", "metric": METRIC}
    return chosen | ({"job": digits.rows[0]["job"]} if name == "job" else {"parameter": "lr"})


def each_query_is_answered(filled: Database, digits: Digits) -> None:
    """Ask all queries of all dashboards."""
    for name in NAMES:
        board = open_board(name, filled.rows, **about(digits, name))
        for panel in board.panels:
            for letter, rows in board.asked(panel).items():
                assert rows or (panel["title"], letter) in SILENT, f"{name}: {panel['title']}, query {letter}"


def a_sweep_is_shown_as_results_tells_it(filled: Database, digits: Digits) -> None:
    """Compare all numbers of the dashboard."""
    board, rows = open_board("sweep", filled.rows, **about(digits, "sweep")), digits.rows
    assert [board.value("Jobs", letter) for letter in "ABCDEF"] == [36, 36, None, None, None, None]
    assert board.chosen["objective"].values == [METRIC]
    finals = {row["job"]: row["metrics"][METRIC] for row in rows}
    assert board.value("Best $objective so far") == max(finals.values())
    assert board.value("A job takes") == pytest.approx(median(row["seconds"] for row in rows), abs=1e-9)
    assert board.value("Values not finite") == 0
    assert sum(row["count"] for row in board.rows("Attempts ended", "A", "10s")) == 36
    assert Counter(row["objective"] for row in board.rows("$objective as it came")) == Counter(finals.values())
    assert max(row["objective"] for row in board.rows("$objective as it came", "B", "10s")) == max(finals.values())

    # The curves, thinned as they are on a screen: each point is one that was logged, and the last is the final value.
    called = {
        f"{', '.join(f'{k}={v}' for k, v in row['parameters'].items())} · {row['job'][:8]}": finals[row["job"]]
        for row in rows
    }
    for curves in (drawn(board, "$metric by step"), drawn(board, "$metric by time")):
        assert {legend: list(curve.values())[-1] for legend, curve in curves.items()} == called
        assert [called[legend] for legend in curves] == list(called.values()), "best first"
        assert {len(curve) for curve in curves.values()} == {40}, "nothing is thinned that has room"
    assert set(next(iter(drawn(board, "$metric by step").values()))) == set(range(1, 41))
    over = Counter((row["parameter"], row["objective"]) for row in board.rows("$objective over ${parameter:text}"))
    assert over == Counter((row["parameters"]["lr"], row["metrics"][METRIC]) for row in rows)

    # The table: the columns of this sweep, none of the other's; best first, as `results` has them.
    [table] = shown(board, "Jobs, best first")
    assert list(table[0]) == [
        "since", "job", "state", "attempt", "host", "user", "seconds", "hidden", "lr", "seed", "loss", "test_accuracy",
        METRIC,
    ]  # fmt: skip
    assert [row[METRIC] for row in table] == [row["metrics"][METRIC] for row in rows]
    shown_of = {row["job"]: row for row in table}
    for row in rows:
        got = shown_of[row["job"]]
        assert {name: got[name] for name in row["metrics"]} == row["metrics"]
        assert {name: got[name] for name in row["parameters"]} == {k: str(v) for k, v in row["parameters"].items()}
        assert (got["state"], got["attempt"], got["seconds"]) == (row["state"], row["attempt"], row["seconds"])


def a_job_is_shown_as_results_tells_it(filled: Database, digits: Digits) -> None:
    """Compare all numbers of the dashboard."""
    for row, end in ((digits.rows[0], digits.ends[0]), (digits.rows[-1], digits.ends[-1])):
        board = open_board("job", filled.rows, sweep="digits", job=row["job"], metric="loss")
        board.since, board.until = round((end - 60) * 1000), round((end + 1) * 1000)
        assert [board.value(title) for title in ("State", "Attempt")] == ["succeeded", row["attempt"]]
        assert board.value("It took") == row["seconds"] and board.value("Result") == row["metrics"][METRIC]
        assert [one["state"] for one in board.rows("Attempts")] == ["running", "succeeded"]
        [parameters], [finals] = shown(board, "Parameters"), shown(board, "Finals")
        assert {one["name"]: one["value"] for one in parameters} == {k: str(v) for k, v in row["parameters"].items()}
        assert {one["name"]: one["value"] for one in finals} == row["metrics"]
        [curve] = shown(board, "$metric by step", "1ms")
        assert [one["step"] for one in curve] == list(range(1, 41)), "nothing is thinned that has room"
        assert curve[-1]["rank 0"] == row["metrics"]["loss"]
        values = [one["rank 0"] for one in curve]
        assert (min(values), max(values)) == (row["summary"]["loss"]["min"], row["summary"]["loss"]["max"])


def a_sweep_that_went_wrong_is_shown_so(filled: Database) -> None:
    """Look at the other sweep."""
    board = open_board("sweep", filled.rows, sweep="other", metric="a/b.c", parameter="alpha")
    assert [board.value("Jobs", letter) for letter in "ABCDEF"] == [3, None, 1, 1, None, 1]
    assert board.value("Best $objective so far") == 4.0, (
        "not what failed, what was stopped and goes on, or is of an older revision"
    )
    assert [row["objective"] for row in board.rows("$objective as it came")] == [4.0]
    assert {row["objective"] for row in board.rows("$objective as it came", "B", "1s")} == {4.0}
    over = board.rows("$objective over ${parameter:text}")
    assert [(row["parameter"], row["objective"]) for row in over] == [(3.0, 4.0)]
    assert board.value("Values not finite") == 3
    [table] = shown(board, "Jobs, best first")
    assert {row["job"]: (row["state"], row["reason"]) for row in table} == {
        OTHERS[0]: ("failed", "exit code 3"), OTHERS[1]: ("running", None), OTHERS[2]: ("stopped", "rmse > 3"),
    }  # fmt: skip
    assert not {"hidden", "lr", METRIC} & set(table[0]) and table[0]["optimizer"] == "o'brien"
    job = open_board("job", filled.rows, sweep="other", job=OTHERS[0], metric="a/b.c")
    job.since = job.until - 300_000
    [curves] = shown(job, "$metric by step", "1ms")
    assert {row["step"]: (row["rank 0"], row["rank 1"]) for row in curves}[9] == (4.5, 5.5)
    [past] = shown(job, "Beginnings and ends")
    assert [(row["state"], row["host"], row["reason"]) for row in past] == [
        ("failed", "alpha", "exit code 3"), ("released", "beta", "spot notice"),
    ]  # fmt: skip


def test_machines_are_shown_as_they_are(influxdb: Database) -> None:
    influxdb.write(b"".join(_machines(OTHERS[0])))
    board = open_board("fleet", influxdb.rows)
    figures = [board.value(title) for title in ("Machines", "Jobs running", "Slots", "Slots in use")]
    assert figures == [2, 6, 8, 75], "one has gone"
    assert {row["host"]: row["cpu"] for row in board.rows("CPU now")} == {"alpha": 25.0, "beta": 75.0}
    machines = {row["host"]: row for row in board.rows("The machines")}
    assert set(machines) == set(MACHINES)
    assert {row["fleet"] for row in machines.values()} == {"lab"} and machines["gone"]["busy"] == 3
    beats = board.rows("Heartbeats", interval="1m")
    last = {host: max(row["time"] for row in beats if row["host"] == host and row["count"]) for host in MACHINES}
    assert last["alpha"] - last["gone"] > 200 * S and last["alpha"] == last["beta"]
    assert any(row["count"] == 0 for row in beats if row["host"] == "gone" and row["time"] > last["gone"])
    rates = [row["mean"] for row in board.rows("Network", "A", "30s") if row["host"] == "alpha"]
    known = [rate for rate in rates if rate is not None]
    assert len(known) > 10 and known == pytest.approx([3e6] * len(known)), "45 MB in 15 s"
    gpus = [row for row in board.rows("GPUs busy", interval="30s") if row["mean"] is not None]
    assert {(row["host"], row["gpu"], row["mean"]) for row in gpus} == {("alpha", "0", 90.0), ("alpha", "1", 90.0)}
    narrowed = open_board("fleet", influxdb.rows, host="beta")
    assert narrowed.value("Machines") == 1 and {row["host"] for row in narrowed.rows("CPU")} == {"beta"}
