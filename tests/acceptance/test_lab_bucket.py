"""Machines whose store is a bucket: they get this machine's credentials, which are written down nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.store.open import open_store
from tests import services
from tests.acceptance.lab_site import LabSite, holding, lines
from tests.acceptance.shop import until

pytestmark = pytest.mark.slow


def test_a_store_in_a_bucket(lab_site: LabSite, require: Callable[[str], str]) -> None:
    """Hosts are given this machine's credentials for it, in a file that nobody else may read."""
    require("moto")
    site, key = lab_site, "a-key-for-us-alone-1729"
    (host,) = site.hosts("h2")
    before = site.left(host)
    site.shop.env |= {"AWS_ACCESS_KEY_ID": "us", "AWS_SECRET_ACCESS_KEY": key}
    with services.moto(f"{site.lab.network}.1") as endpoint:
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


async def everything(url: str) -> list[tuple[str, bytes]]:
    """Return all that is in a store, by keys."""
    store = await open_store(url)
    try:
        return [(item.key, await store.get(item.key)) for item in await store.list("")]
    finally:
        await store.close()
