"""Pilots on this machine's Slurm that cannot begin, and say why; those whose store is a bucket; the entry for them."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest

from monkey.store.open import open_store
from tests import services
from tests.acceptance.shop import Shop, until
from tests.acceptance.slurm_desk import describe, list_files, overlaps, say, sweep
from tests.local_slurm import LocalSlurm
from tests.trusting import trust

pytestmark = [pytest.mark.slow, pytest.mark.needs("slurm")]


def test_a_pilot_that_cannot_begin_says_why(desk: Shop, tmp_path: Path) -> None:
    describe(desk, tmp_path, more=f"store_path: {tmp_path / 'store'}\n    setup: ['true', 'load_module cuda']")
    sweep(desk, jobs=1)
    said = say(desk, "apply", "-y", code=1)
    assert "could not begin" in said and "setup failed: load_module cuda" in said
    assert "setup failed: load_module cuda" in say(desk, "audit", code=1)
    shown = say(desk, "list", "instances")
    assert (
        "failed" in shown and "setup failed: load_module cuda (" in shown and "load_module: command not found" in shown
    )
    assert "cluster: a machine gave up: setup failed: load_module cuda (" in say(desk, "status")
    [boot] = desk.json("status")["boots"]
    assert boot["fleet"] == "cluster" and any("load_module: command not found" in line for line in boot["log"])
    describe(desk, tmp_path)
    say(desk, "apply", "-y")
    assert "gave up" not in say(desk, "status") and "failed" not in say(desk, "list", "instances")


def test_an_agent_that_ends_at_once_with_an_error_is_not_started_for_ever(desk: Shop, tmp_path: Path) -> None:
    broken = "setup: ['srun() { echo no step for you; return 3; }']"
    describe(desk, tmp_path, pilots=1, more=f"store_path: {tmp_path / 'store'}\n    {broken}")
    sweep(desk, jobs=1)
    say(desk, "apply", "-y", "--detach", code=None)  # it may see that already
    until(lambda: "its agent ended with 3 (no step for you)" in say(desk, "status"), "it is said", step=1.0)
    assert "its agent ended with 3 (no step for you)" in say(desk, "list", "instances")
    assert "its agent ended with 3 (no step for you)" in say(desk, "audit", code=1)


@pytest.mark.needs("moto")
def test_a_bucket_is_the_store_of_pilots(desk: Shop, slurm: LocalSlurm, tmp_path: Path) -> None:
    """Pilots get this machine's credentials for it, in a file that nobody else may read."""
    key = "a-key-for-us-alone-1729"
    desk.env |= {"AWS_ACCESS_KEY_ID": "us", "AWS_SECRET_ACCESS_KEY": key}
    with services.moto() as endpoint:
        trust(endpoint, env=desk.env)
        url = f"s3://{services.BUCKET}/pilots?endpoint={endpoint}&region=us-east-1"
        describe(desk, tmp_path, store=url, more="setup: [load_module cuda]")
        sweep(desk, jobs=6)
        said = say(desk, "apply", "-y", "--detach", code=None)  # it may see that already
        until(lambda: "gave up: setup failed: load_module cuda (" in say(desk, "status"), "the bucket has it", step=1.0)
        describe(desk, tmp_path, store=url, more="max_slots: 2")
        desk.ledger.hold()
        said += say(desk, "apply", "-y", "--detach")
        job = slurm.run("squeue", "-h", "-o", "%i").split()[0].partition("_")[0]
        kept = slurm.run("scontrol", "show", "job", "-d", job) + slurm.run(
            "scontrol", "write", "batch_script", job, "-"
        )
        assert key not in kept + said + slurm.run("ps", "-ewwo", "args")
        holders = [file for file in list_files(tmp_path) if Path(file).is_file() and key in read_text(file)]
        assert [Path(file).name for file in holders] == ["credentials.json"]
        assert stat.S_IMODE(Path(holders[0]).stat().st_mode) == 0o600
        desk.ledger.release()
        until(lambda: desk.states() == {"succeeded": 6}, "all end", step=1.0)
        assert sum(desk.ledger.begins.values()) == 6 and not overlaps(desk)
        assert "begun" in say(desk, "logs", next(iter(desk.ledger.begins)))
        assert not [name for name, data in asyncio.run(list_contents(url)) if key.encode() in data]
        say(desk, "destroy", "-y")
        assert slurm.queue() == [] and list_files(tmp_path) == []


def read_text(file: str) -> str:
    return Path(file).read_text(errors="replace")


async def list_contents(url: str) -> list[tuple[str, bytes]]:
    """Return all that is in a store, by keys."""
    store = await open_store(url)
    try:
        return [(item.key, await store.get(item.key)) for item in await store.list("")]
    finally:
        await store.close()


def test_a_project_is_begun_by_what_the_cluster_has(desk: Shop, tmp_path: Path) -> None:
    """The entry is written, and is one that Slurm takes."""
    store = ["--store", str(tmp_path / "store")]
    say(desk, "init", "new", "--provider", "slurm", *store)
    text = (desk.root / "new" / "monkey.yaml").read_text()
    assert "partition: all  # 2 nodes of 4 CPUs, 2 GiB; jobs of 1h at most; the default" in text
    assert "# partition: tiny  # 1 node of 4 CPUs, 2 GiB; jobs of 3m at most" in text
    assert "time: 1h" in text and "cpus: 4" in text and "memory: 2000MiB" in text
    (desk.root / "monkey.yaml").write_text("project: shop  # ours\n")
    told = say(desk, "init", "--provider", "slurm", "--partition", "tiny", *store)
    assert "Added to monkey.yaml: store and providers." in told and "provider: cluster" in told
    text = (desk.root / "monkey.yaml").read_text()
    assert text.startswith("project: shop  # ours\n") and "    partition: tiny  #" in text and "time: 3m" in text
    (desk.root / "monkey.yaml").write_text(text + f"    store_path: {tmp_path / 'store'}\n")
    sweep(desk, jobs=1)
    assert "the next would start at" in say(desk, "plan")
    assert "expected a partition of the cluster, found 'gpu'" in say(
        desk, "init", "other", "--provider", "slurm", "--partition", "gpu", code=1
    )
    assert not (desk.root / "other").exists()
