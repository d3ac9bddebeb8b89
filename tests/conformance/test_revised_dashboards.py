"""A sweep that was resumed, revised and made smaller: what the dashboards show is what `monkey results` tells."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import influx
from tests.acceptance.shop import Shop, until
from tests.acceptance.test_record import LoggedJobs
from tests.grafana import drawn, open_board, shown
from tests.influx import Database
from tests.trusting import trust

JOBS = 4


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    made.kill_all()


@pytest.mark.slow
def test_a_revised_sweep_is_shown_as_its_newest_revision_is(
    require: Callable[[str], str], shop: Shop, tmp_path: Path
) -> None:
    for program in ("influxd", "influxd1", "grafana"):
        require(program)
    new, old = tmp_path / "new", tmp_path / "old"
    new.mkdir()
    old.mkdir()
    with influx.serve("influxd", new) as newer, influx.serve("influxd1", old) as older:
        sent, filled = newer.database(), older.database()
        name_database(shop, sent)
        jobs = LoggedJobs(shop, JOBS, 0.1)
        shop.run("apply", "--detach")
        until(lambda: jobs.step() >= 22, "they have logged")
        for pid in shop.agents:
            os.kill(pid, signal.SIGKILL)
        shop.run("apply")
        assert sum(line["what"] == "begin" for line in jobs.lines) > JOBS, "none was resumed"
        is_shown(sent, shop, jobs)

        # Whatever it was that the old code logged: nobody may take it for a result of the new.
        code = shop.root / "logger.py"
        code.write_text(code.read_text().replace("random.uniform(0.5, 1.5)", "random.uniform(5, 15)"))
        shop.run("apply")
        rows = is_shown(sent, shop, jobs)
        assert len(rows) == JOBS and min(row["metrics"]["loss"] for row in rows) >= 5

        # Nothing is left to run: no agent hears of this revision.
        spec = shop.root / "specs/sweep.yaml"
        spec.write_text(spec.read_text().replace(f"[0, {JOBS}]", "[0, 2]"))
        shop.run("apply")
        assert len(is_shown(sent, shop, jobs)) == 2

        name_database(shop, filled)
        shop.run("backfill", "sweep")
        assert len(is_shown(filled, shop, jobs)) == 2
        spec.write_text(spec.read_text().replace("[0, 2]", f"[0, {JOBS}]"))
        shop.run("apply")
        assert len(is_shown(filled, shop, jobs)) == JOBS, "what comes back is shown again"


def name_database(shop: Shop, database: Database) -> None:
    told = ", ".join(f'{key}: "{value}"' for key, value in database.settings.items())
    (shop.root / "monkey.yaml").write_text(f"project: shop\nmetrics: {{influxdb: {{{told}}}}}\n")
    shop.env |= database.secrets
    trust(database.settings["url"], env=shop.env)


def is_shown(database: Database, shop: Shop, jobs: LoggedJobs) -> list[dict[str, Any]]:
    """Compare what is shown with the results, which it returns, and with the ledger of what the jobs logged."""
    rows = shop.json("results", "sweep")
    count = len(rows)

    def arrived() -> bool:
        board = open_board("sweep", database.rows, sweep="sweep", metric="loss", parameter="i")
        return [board.value("Jobs", letter) for letter in "AB"] == [count, count]

    until(arrived, "the ends arrive")
    board = open_board("sweep", database.rows, sweep="sweep", metric="loss", parameter="i")
    assert {row["state"] for row in rows} == {"succeeded"}
    assert [board.value("Jobs", letter) for letter in "ABCDEF"] == [count, count, None, None, None, None]
    losses = {row["job"]: row["metrics"]["loss"] for row in rows}
    assert board.value("Best $objective so far") == min(losses.values())
    over = {row["parameter"]: row["objective"] for row in board.rows("$objective over ${parameter:text}")}
    assert over == {row["parameters"]["i"]: losses[row["job"]] for row in rows}
    came = [row["objective"] for row in board.rows("$objective as it came")]
    assert sorted(came) == sorted(losses.values())
    [table] = shown(board, "Jobs, best first")
    told = [(row["job"], row["loss"], row["attempt"], row["seconds"]) for row in table]
    assert told == [(row["job"], losses[row["job"]], row["attempt"], row["seconds"]) for row in rows]
    (user,) = {row["user"] for row in table}
    tagged = database.rows('SHOW TAG VALUES FROM "metrics" WITH KEY = "user"')
    assert "@" in user and {row["value"] for row in tagged} == {user}

    until(lambda: _curves(database) == _kept(jobs, rows), "the curves are of what was kept")
    return rows


def _curves(database: Database) -> dict[str, dict[int, float]]:
    board = open_board("sweep", database.rows, sweep="sweep", metric="loss", parameter="i")
    return {legend.rpartition(" ")[2]: curve for legend, curve in drawn(board, "$metric by step").items()}


def _kept(jobs: LoggedJobs, rows: list[dict[str, Any]]) -> dict[str, dict[int, float]]:
    return {row["job"][:8]: jobs.kept(row["job"])["loss"] for row in rows}
