"""`monkey backfill`: InfluxDB's copy, dropped and made anew from the store, is the same, row by row."""

from __future__ import annotations

import json
import subprocess

from monkey.metrics.usage import USAGE_FILE, write_sample
from tests import influx
from tests.acceptance.shop import Shop, until
from tests.trusting import trust

#: Logs what agents read the fast way and what they read the slow way; the first attempt of odd ones fails, and one
#: runs until its agent has sent what it logged by then.
JOB = """\
import os, sys, time
import monkey

p = monkey.params()
# First, since InfluxDB cannot unset a field: a running job's last finite value would stay, if a sample fell before it.
monkey.log("loss", float("nan"))
for step in range(200):
    every_fifth = {"val_acc": step / 200} if step % 5 == 4 else {}
    monkey.log({"loss": 1 / (step + p["i"] + 1), **every_fifth}, step=step)
monkey.log({"a,b c": 3, "val/acc": 0.25, "step": 1.5}, step=7)
if os.fork() == 0:
    monkey.log("of a child", 10**15)
    os._exit(0)
os.wait()
while p == {"i": 2, "name": "x"} and not os.path.exists(sys.argv[3]):
    time.sleep(0.02)
sys.exit(p["i"] % 2 and os.environ["MONKEY_ATTEMPT"] == "1")
"""
#: Points of one attempt: a line with nothing but NaN makes none.
LOGGED = 202


def test_a_database_that_was_dropped_is_made_anew(shop: Shop, influxdb: influx.Database) -> None:
    run_sweep(shop, influxdb)
    attempts = 8 + 4
    # Each attempt begins and ends; one more point is of the revision.
    until(lambda: counts(influxdb) == (attempts * LOGGED, attempts * 2 + 1), f"all points: {counts(influxdb)}")
    [logged] = influxdb.rows("SELECT count(loss) AS losses, count(val_acc) AS accuracies FROM metrics")
    assert (logged["losses"], logged["accuracies"]) == (attempts * 200, attempts * 40)
    before = {name: rows(influxdb, name) for name in ("metrics", "jobs")}
    assert {row["state"] for row in influxdb.rows("SELECT state FROM jobs")} == {"running", "succeeded", "failed"}
    influxdb.drop()
    assert counts(influxdb) == (0, 0)
    # What attempts used of the machine depends on when it was sampled: one sample is left.
    for path in (shop.root / ".monkey/store/projects/shop/jobs").glob(f"*/out/*/{USAGE_FILE}"):
        path.unlink()
    left = next((shop.root / ".monkey/store/projects/shop/jobs").glob("*/out/00000001"))
    (left / USAGE_FILE).write_bytes(
        write_sample(1700000000123456789, {"cpu_percent": 99.5, "memory_bytes": 7}) + b'{"m":{"cpu'
    )
    for _ in range(2):  # the second time nothing is added
        done = shop.run("backfill", "sweep").stdout
        assert done == f"sweep: {attempts * (LOGGED + 2) + 2:,} points of {attempts} attempts sent.\n"
        for name, expected in before.items():
            found = rows(influxdb, name)
            assert found == expected, [pair for pair in zip(found, expected, strict=False) if pair[0] != pair[1]][:3]
    [sample] = influxdb.rows(f"SELECT * FROM system WHERE job = '{left.parent.parent.name}'")
    assert sample["time"] == 1700000000123456789 and (sample["cpu_percent"], sample["memory_bytes"]) == (99.5, 7.0)
    assert sample["fleet"] == "local" and sample["agent"] == f"local/{sample['host']}"
    assert not set(influxdb.secrets.values()) & set(done.split())
    assert "there is no sweep 'nowhere'" in shop.run("backfill", "nowhere", code=None).stderr
    shop.env |= dict.fromkeys(influxdb.secrets, "wrong")
    refused = shop.run("backfill", "sweep", code=1).stderr
    assert "does not take them" in refused and "`monkey doctor`" in refused


def run_sweep(shop: Shop, influxdb: influx.Database) -> None:
    """Run the jobs, one of them until its agent has sent again what it was sent when it began."""
    said = json.dumps({"influxdb": dict(influxdb.settings)})
    (shop.root / "monkey.yaml").write_text(f"project: shop\nmetrics: {said}\n")
    (shop.root / "log.py").write_text(JOB)
    seen = shop.root.parent / "seen"
    text = f"command: [python3, log.py, '{{i}}', '{{name}}', {seen}]\nmetric: {{name: loss}}\nmax_retries: 1\n"
    shop.spec(text + "outputs: []\nparameters: {i: {range: [0, 4]}, name: [x, 'a \"b\"']}\n")
    shop.env |= influxdb.secrets
    trust(influxdb.settings["url"], env=shop.env)
    with shop.start("apply", stdout=subprocess.DEVNULL) as apply:
        so_far = "SELECT max_loss FROM jobs WHERE state = 'running' AND number_i = 2 AND param_name = 'x'"
        try:
            until(lambda: influxdb.rows(so_far), "what a job has logged is with its beginning", patience=60)
        finally:
            seen.touch()
    assert apply.returncode == 0 and shop.states() == {"succeeded": 8}


def rows(database: influx.Database, measurement: str) -> list[str]:
    """Return all rows with all that they hold, in an order that depends on nothing else."""
    return sorted(json.dumps(row, sort_keys=True) for row in database.rows(f"SELECT * FROM {measurement}"))


def counts(database: influx.Database) -> tuple[int, int]:
    return len(rows(database, "metrics")), len(rows(database, "jobs"))
