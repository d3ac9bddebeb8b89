"""Machines whose store is a bucket: they get this machine's credentials, which are written down nowhere else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.store.open import open_store
from tests import influx, services
from tests.acceptance.lab_site import LabSite, holding, lines
from tests.acceptance.shop import until
from tests.acceptance.site import LEDGER
from tests.trusting import trust

pytestmark = pytest.mark.slow


def test_a_store_in_a_bucket(lab_site: LabSite, require: Callable[[str], str]) -> None:
    """Hosts are given this machine's credentials for it, in a file that nobody else may read."""
    require("moto")
    site, key = lab_site, "a-key-for-us-alone-1729"
    (host,) = site.hosts("h2")
    before = site.left(host)
    site.shop.env |= {"AWS_ACCESS_KEY_ID": "us", "AWS_SECRET_ACCESS_KEY": key}
    with services.moto(f"{site.lab.network}.1") as endpoint:
        trust(endpoint, env=site.shop.env)
        url = f"s3://{services.BUCKET}/lab?endpoint={endpoint}&region=us-east-1"
        site.providers("h2", store=url)
        site.sweep(jobs=4)
        ledger = site.ledger(host)
        ledger.hold()
        site.apply()
        until(lambda: ledger.executions, "the host works")
        assert "No changes" in site.run("plan")
        site.shop.env["AWS_SECRET_ACCESS_KEY"] = "another"
        assert lines(site.run("plan"), "lab/h2") == ["~ lab/h2: other credentials"]
        site.shop.env["AWS_SECRET_ACCESS_KEY"] = key
        ledger.release()
        until(lambda: [row["state"] for row in site.rows()] == ["succeeded"] * 4, "all jobs end")
        assert ledger.executions == 4
        (path,) = holding(key, host.home)
        assert path.endswith("/credentials.json") and Path(path).stat().st_mode & 0o777 == 0o600
        assert key not in site.said and key not in host.within("ps", "-ewwo", "args")
        assert not holding(key, site.shop.root.parent)
        contents = dict(asyncio.run(everything(url)))
        assert any(".pulumi/" in name for name in contents), "Pulumi's state is there"
        assert not [name for name, data in contents.items() if key.encode() in data]
        site.audit()
        site.run("destroy", "-y")
    assert site.left(host) == before


#: Logs a line as another language does: hosts have no `monkey` but the agent's.
LOGS = """\
import os, runpy, sys, time

with open(os.environ["MONKEY_METRICS_DIR"] + "/py.jsonl", "a") as file:
    for step in range(50):
        file.write(f'{{"t": {time.time()}, "step": {step}, "m": {{"loss": {step}.5}}}}\\n')
runpy.run_path("job.py", run_name="__main__")
"""


def test_metrics_of_a_host(lab_site: LabSite, require: Callable[[str], str], tmp_path: Path) -> None:
    """The host's exporter sends them by what came with the agent; dropped, they are made anew from the bucket."""
    require("moto"), require("influxd1")
    site = lab_site
    (host,) = site.hosts("h2")
    before, here = site.left(host), f"{site.lab.network}.1"
    site.shop.env |= {"AWS_ACCESS_KEY_ID": "us", "AWS_SECRET_ACCESS_KEY": "ours"}
    with services.moto(here) as endpoint, influx.serve("influxd1", tmp_path, address=here) as server:
        database = server.database()
        (secret,) = database.secrets.values()
        site.shop.env |= database.secrets
        trust(endpoint, server.url, env=site.shop.env)
        url = f"s3://{services.BUCKET}/metrics?endpoint={endpoint}&region=us-east-1"
        site.providers("h2", store=url, metrics={"influxdb": dict(database.settings)})
        (site.shop.root / "log.py").write_text(LOGS)
        site.sweep(f"command: [python3, log.py, '{LEDGER}', '0', '{{i}}']\n", jobs=4)
        site.apply()
        until(lambda: [row["state"] for row in site.rows()] == ["succeeded"] * 4, "all jobs end")
        assert site.ledger(host).executions == 4
        # Each attempt begins and ends; one more point is of the revision.
        until(lambda: counts(database) == {"metrics": 200, "jobs": 9}, f"all points: {counts(database)}")
        assert {row["host"] for row in database.rows("SELECT host FROM jobs")} == {"h2"}
        assert "All is well" in site.run("doctor")
        found = rows(database)
        database.drop()
        assert counts(database) == {}
        assert "of 4 attempts sent" in site.run("backfill", "sweep")
        assert rows(database) == found
        (path,) = holding(secret, host.home)
        assert path.endswith("/secrets") and Path(path).stat().st_mode & 0o777 == 0o600
        assert secret not in site.said and secret not in host.within("ps", "-ewwo", "args")
        assert not [name for name, data in asyncio.run(everything(url)) if secret.encode() in data]
        site.run("destroy", "-y")
    assert site.left(host) == before


def rows(database: influx.Database) -> list[str]:
    """Return all points of jobs and of what they logged, in an order that depends on nothing else."""
    found = [row for name in ("metrics", "jobs") for row in database.rows(f"SELECT * FROM {name}")]
    return sorted(json.dumps(row, sort_keys=True) for row in found)


def counts(database: influx.Database) -> dict[str, int]:
    """Return the number of points by measurement, of those that have any."""
    found = {name: len(database.rows(f"SELECT * FROM {name}")) for name in ("metrics", "jobs")}
    return {name: count for name, count in found.items() if count}


async def everything(url: str) -> list[tuple[str, bytes]]:
    """Return all that is in a store, by keys."""
    store = await open_store(url)
    try:
        return [(item.key, await store.get(item.key)) for item in await store.list("")]
    finally:
        await store.close()
