"""What the dashboards show, on both versions of InfluxDB, is what `monkey results` tells of the same sweep."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from monkey.metrics import names
from monkey.metrics.influx_points import write_job_point, write_point
from tests import digits as sweep_of_digits
from tests import influx
from tests.digits import METRIC, Digits
from tests.grafana import NAMES, Board, shown
from tests.influx import Database

#: Nanoseconds in a second.
S = 1_000_000_000
#: Panels that may tell nothing of `digits` and the machines here, by title, with the letter of their query.
SILENT = {("Jobs", letter) for letter in "CDEF"} | {("Attempts ended", letter) for letter in "BCD"}
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
    """Return the points of a sweep: a job was given back, and failed with values not finite; another was stopped."""
    about: dict[str, Any] = {"parameters": {"alpha": 1, "optimizer": "o'brien"}, "metric": "rmse", "count": 5}
    summary = {"rmse": {"last": 2.5, "min": 1.0, "max": 2.5, "nonfinite": 3}, "a/b.c": {"last": 1.0}}
    at = time.time() - 30
    return b"".join(
        [
            write_job_point(
                "other", "0123", names.RELEASED, at, 2, attempt=1, host="beta", reason="spot notice", **about
            ),
            write_job_point(
                "other", "0123", names.FAILED, at + 1, 4, attempt=2, host="alpha", reason="exit code 3", exit_code=3,
                seconds=4.5, summary=summary, **about,
            ),
            write_job_point("other", "4567", names.RUNNING, at, 1, attempt=1, host="beta", **about),
            write_job_point(
                "other", "4567", names.STOPPED, at - 1, 0, attempt=1, host="beta", summary={"rmse": {"last": 0.5}},
                **about,
            ),
            write_job_point(
                "other", "89ab", names.STOPPED, at + 2, 2, attempt=1, host="beta", reason="rmse > 3", seconds=2.0,
                summary={"rmse": {"last": 4.0, "min": 4.0, "max": 4.0}}, **about,
            ),
            *(
                write_point(names.METRICS, {"sweep": "other", "job": "0123", "rank": str(rank), "host": "beta"},
                      {"a/b.c": step / 2 + rank, "step": step}, int(at * S) + step)
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


def opened(name: str, database: Database, **wanted: str) -> Board:
    """Open a dashboard on the last hour."""
    now = int(time.time() * 1000)
    board = Board(name, database.rows, now - 3_600_000, now + 60_000)
    board.choose(**wanted)
    return board


def about(digits: Digits, name: str) -> dict[str, str]:
    """Return what is chosen of a dashboard's variables."""
    if name == "fleet":
        return {}
    chosen = {"sweep": "digits", "metric": METRIC}
    return chosen | ({"job": digits.rows[0]["job"]} if name == "job" else {"parameter": "lr"})


def each_query_is_answered(filled: Database, digits: Digits) -> None:
    """Ask all queries of all dashboards."""
    for name in NAMES:
        board = opened(name, filled, **about(digits, name))
        for panel in board.panels:
            for letter, rows in board.asked(panel).items():
                assert rows or (panel["title"], letter) in SILENT, f"{name}: {panel['title']}, query {letter}"


def a_sweep_is_shown_as_results_tells_it(filled: Database, digits: Digits) -> None:
    """Compare all numbers of the dashboard."""
    board, rows = opened("sweep", filled, **about(digits, "sweep")), digits.rows
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
    [curves] = shown(board, "$metric by step", "100ms")
    assert [row["step"] for row in curves] == sorted({row["step"] for row in curves})
    assert {job: [row[job] for row in curves if row[job] is not None][-1] for job in finals} == finals
    assert {row["step"] for row in curves} <= set(range(1, 41)) and 40 in {row["step"] for row in curves}
    by_time = {row["job"]: row["last"] for row in board.rows("$metric by time", interval="10s")}
    assert by_time == finals
    over = Counter((row["parameter"], row["objective"]) for row in board.rows("$objective over ${parameter:text}"))
    assert over == Counter((row["parameters"]["lr"], row["metrics"][METRIC]) for row in rows)

    # The table: the columns of this sweep, none of the other's; best first, as `results` has them.
    [table] = shown(board, "Jobs, best first")
    assert list(table[0]) == [
        "since", "job", "state", "attempt", "host", "seconds", "hidden", "lr", "seed", "loss", "test_accuracy", METRIC,
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
        board = opened("job", filled, sweep="digits", job=row["job"], metric="loss")
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
    board = opened("sweep", filled, sweep="other", metric="a/b.c", parameter="alpha")
    assert [board.value("Jobs", letter) for letter in "ABCDEF"] == [5, None, 1, 1, None, 1]
    assert board.value("Best $objective so far") == 4.0, "what failed counts not, nor what was stopped and goes on"
    assert [row["objective"] for row in board.rows("$objective as it came")] == [0.5, 4.0]
    assert {row["objective"] for row in board.rows("$objective as it came", "B", "1s")} == {0.5, 4.0}
    over = board.rows("$objective over ${parameter:text}")
    assert [(row["parameter"], row["objective"]) for row in over] == [(1.0, 4.0)]
    assert board.value("Values not finite") == 3
    [table] = shown(board, "Jobs, best first")
    assert {row["job"]: (row["state"], row["reason"]) for row in table} == {
        "0123": ("failed", "exit code 3"), "4567": ("running", None), "89ab": ("stopped", "rmse > 3"),
    }  # fmt: skip
    assert not {"hidden", "lr", METRIC} & set(table[0]) and table[0]["optimizer"] == "o'brien"
    job = opened("job", filled, sweep="other", job="0123", metric="a/b.c")
    job.since = job.until - 300_000
    [curves] = shown(job, "$metric by step", "1ms")
    assert {row["step"]: (row["rank 0"], row["rank 1"]) for row in curves}[9] == (4.5, 5.5)
    [past] = shown(job, "Claims and ends")
    assert [(row["state"], row["host"], row["reason"]) for row in past] == [
        ("failed", "alpha", "exit code 3"), ("released", "beta", "spot notice"),
    ]  # fmt: skip


def test_machines_are_shown_as_they_are(influxdb: Database) -> None:
    influxdb.write(b"".join(_machines("0123")))
    board = opened("fleet", influxdb)
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
    narrowed = opened("fleet", influxdb, host="beta")
    assert narrowed.value("Machines") == 1 and {row["host"] for row in narrowed.rows("CPU")} == {"beta"}
