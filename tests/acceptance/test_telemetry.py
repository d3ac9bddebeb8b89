"""The way of metrics to InfluxDB while everything on it is killed: what a job was told is logged arrives."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import influx
from tests.acceptance.shop import Shop, until
from tests.trusting import trust

pytestmark = pytest.mark.slow

LONG = "MONKEY_LONG" in os.environ

#: Logs, and after each call notes outside of the product what was logged. Goes on until the file `stop` is there.
WRITER = """\
import os, random, sys, time

ledger, writer = sys.argv[1], os.environ["MONKEY_JOB"]
real, back = time.time_ns, f"{ledger}/back-{writer}"
time.time_ns = lambda: real() - (3_600_000_000_000 if os.path.exists(back) else 0)
import monkey

note = os.open(f"{ledger}/noted", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
with open(f"{ledger}/began", "a") as began:
    began.write(f"{writer} {os.getpid()}\\n")
i = 0
while not os.path.exists(f"{ledger}/stop"):
    for _ in range(20):
        value = random.random()
        monkey.log({"value": value, "i": i}, step=i)
        os.write(note, f"{writer} {i} {value!r}\\n".encode())
        i += 1
    time.sleep(0.01)
monkey.log("stopped", i, step=i)
"""


def noted(shop: Shop) -> set[tuple[str, int, float]]:
    """Return (writer, i, value) of all that was logged."""
    lines = (line.split() for line in (shop.ledger.directory / "noted").read_text().splitlines())
    return {(writer, int(i), float(value)) for writer, i, value in lines}


def size(shop: Shop) -> int:
    """Return how many bytes of notes there are: some forty for each."""
    return (shop.ledger.directory / "noted").stat().st_size


def began(shop: Shop) -> list[tuple[str, int]]:
    """Return the writers' executions, and their process ids."""
    path = shop.ledger.directory / "began"
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [(writer, int(pid)) for writer, pid in lines]


def project(shop: Shop, database: influx.Database, jobs: int) -> None:
    """Have the writers run, and their metrics sent there."""
    said = ", ".join(f'{key}: "{value}"' for key, value in database.settings.items())
    local = "providers: {local: {max_slots: 4}}\n"
    (shop.root / "monkey.yaml").write_text(f"project: shop\n{local}metrics: {{influxdb: {{{said}}}}}\n")
    (shop.root / "writer.py").write_text(WRITER)
    command = f"command: [python3, writer.py, '{shop.ledger.directory}', '{{i}}']\n"
    shop.spec(command + "max_retries: 3\nresources: {cpus: 0.1}\noutputs: []\n", jobs=jobs)
    shop.env |= database.secrets
    trust(database.settings["url"], env=shop.env)


def arrived(database: influx.Database) -> set[tuple[str, int, float]]:
    """Return what a second client finds."""
    return {(row["job"], int(row["i"]), row["value"]) for row in database.rows("SELECT i, value, job FROM metrics")}


def check(shop: Shop, database: influx.Database, kills: int) -> None:
    """Hold InfluxDB against what the writers noted; each that was killed may have been in the middle of one call."""
    logged = noted(shop)
    count = "SELECT count(value) FROM metrics"
    until(lambda: sum(row["count"] for row in database.rows(count)) >= len(logged), "all of it arrives")
    found = arrived(database)
    assert logged <= found, f"{len(logged - found)} of {len(logged)} are lost"
    assert len(found) <= len(logged) + kills
    [counted] = database.rows(count)
    assert counted["count"] == len(found), "something is there twice"


@pytest.mark.parametrize("program", ["influxd", "influxd1"] if LONG else ["influxd1"])
def test_nothing_is_lost_though_all_are_killed(
    shop: Shop, require: Callable[[str], str], tmp_path: Path, program: str
) -> None:
    """Agents with their jobs, exporters, the server, a writer alone; and a writer's clock is set back by an hour."""
    require(program)
    # Four (two) at once; a job that loses its machine eleven times has failed, and twelve agents are killed.
    writers, jobs = (4, 12) if LONG else (2, 2)
    orders = (
        ["agent"] * 12 + ["exporter"] * 12 + ["server"] * 4 if LONG else ["agent", "exporter", "exporter", "server"]
    )
    random.Random(6).shuffle(orders)
    data = tmp_path / "server"
    data.mkdir()
    with influx.serve(program, data) as server:
        database = server.database()
        project(shop, database, jobs)
        shop.run("apply", "--detach")
        until(lambda: len({writer for writer, _ in began(shop)}) >= writers, "all writers have begun")
        first = began(shop)[0][0]
        (shop.ledger.directory / f"back-{first}").touch()
        os.kill(began(shop)[1][1], signal.SIGKILL)
        rest = (25.0 if LONG else 4.0) / len(orders)
        for order in orders:
            before, logged = len(began(shop)), size(shop)
            if order == "server":
                server.kill()
                server.start()
            elif order == "exporter":
                until(lambda: shop.processes("monkey.metrics.exporter"), "an exporter is there")
                shop.kill(shop.processes("monkey.metrics.exporter"))
            else:
                shop.kill(shop.agents)
                shop.run("apply", "--detach")
                until(lambda n=before: len(began(shop)) >= n + writers, "the writers are begun again")
            until(lambda n=logged: size(shop) > n + 20_000, "they go on")
            time.sleep(rest)  # the pause between kills itself
        (shop.ledger.directory / "stop").touch()
        shop.run("apply")
        check(shop, database, kills=1 + writers * orders.count("agent"))
        newest = "SELECT last(state) FROM jobs GROUP BY job"
        until(lambda: [row["last"] for row in database.rows(newest)] == ["succeeded"] * jobs, "the ends arrive")
        [ended] = [row for row in database.rows(f"SELECT * FROM jobs WHERE job = '{first}'") if row["exit_code"] == 0]
        assert ended["state"] == "succeeded" and int(ended["param_i"]) in range(jobs) and ended["final_stopped"] > 0
        told = "".join(path.read_text(errors="replace") for path in Path(shop.state).rglob("*") if path.is_file())
        assert not [secret for secret in database.secrets.values() if secret in told + shop.agent_log]
