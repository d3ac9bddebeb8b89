"""One bad job, or one bad entry of the store, beside honest sweeps: it ends alone, and is told by its key."""

from __future__ import annotations

import copy
import gzip
import io
import json
import math
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from monkey.signing.entry_signers import load_user_signers
from monkey.signing.signed_entry import EntryPlace
from monkey.transfer.code.code_manifest import ManifestEntry, PathKind, hash_manifest
from tests.acceptance.shop import Shop, until
from tests.nested import NEST

pytestmark = pytest.mark.slow

#: Sweep to the one field of its revision that is of another type, or out of range, and what it is.
FORGED: dict[str, tuple[str, Any]] = {
    "env": ("recipe.env", {"A": 1}),
    "code": ("recipe.code", "../x"),
    "memory": ("settings.resources.memory", "x"),
    "secrets": ("settings.secrets", math.nan),
    "cap": ("settings.max_concurrent_jobs", -1),
    "providers": ("settings.providers", ["local", 5]),
    "ids": ("table.ids", "../../../../etc/"),
    "index": ("table.columns.i.index", [7]),
    "clash": ("table.columns", {name: {"values": [1], "index": [0]} for name in ("a", "a.b", "i")}),
}


def store(shop: Shop) -> Path:
    """Return the directory of the store."""
    return shop.root / ".monkey" / "store"


def forge(shop: Shop, name: str, path: str, value: Any, job: str) -> None:
    """Put a sweep of one job into the store that is like the real sweep `one`, but for a field of its revision."""
    project = store(shop) / "projects" / "shop"
    body: dict[str, Any] = json.loads((project / "sweeps/one/00000001").read_text())
    del body["signature"]
    body = inner = copy.deepcopy({**body, "sweep": name, "table": {**body["table"], "ids": job}})
    *groups, field = path.split(".")
    for group in groups:
        inner = inner[group]
    inner[field] = value
    # Signed: by somebody who is trusted, and whose version of monkey is another.
    place = EntryPlace(json.loads((store(shop) / "format").read_text())["id"], "shop", name, 1, "")
    entry = load_user_signers(environ=shop.env).sign(place, json.dumps(body, separators=(",", ":")).encode())
    for key, data in ((f"sweeps/{name}/00000001", entry), (f"queue/local/{name}/00000001", b"{}")):
        (project / key).parent.mkdir(parents=True)
        (project / key).write_bytes(data)


def test_forged_revisions_stop_nobody_else_and_are_told_by_their_keys(shop: Shop) -> None:
    shop.hurry()
    shop.spec(jobs=1, seconds=0, name="one")
    shop.run("apply", "specs/one.yaml")
    for n, (name, (path, value)) in enumerate(FORGED.items()):
        forge(shop, name, path, value, f"{n:016x}")
    forge(shop, "pipe", "spec", "", "e" * 16)
    (store(shop) / "projects/shop/sweeps/pipe/00000001").unlink()
    os.mkfifo(store(shop) / "projects/shop/sweeps/pipe/00000001")
    shop.spec(jobs=4, name="honest")
    shop.run("apply", "specs/honest.yaml")
    assert shop.ledger.executions == 5
    told = shop.run("status", code=None).stdout
    # Its agent alone opens it, and may have left by now.
    assert "sweeps/pipe/00000001: skipped" in shop.agent_log
    for name in FORGED:
        assert f"sweeps/{name}/00000001" in told, told
        # Whoever asks for it by its name is told no less.
        assert f"sweeps/{name}/00000001" in shop.run("pause", name, code=1).stderr
    assert "sweeps/env/00000001" in shop.run("list", "sweeps").stderr
    assert "honest" in told
    shop.spec(jobs=6, name="honest")
    shop.run("apply", "specs/honest.yaml")
    assert shop.ledger.executions == 7 and not shop.ledger.overlaps
    assert "Traceback" not in shop.agent_log


def test_entries_that_cannot_be_read_keep_no_sweep_from_its_end(shop: Shop) -> None:
    """`fail_fast` is noted behind garbage."""
    gate = shop.root.parent / "gate"
    script = f"touch {gate}.open; until [ -e {gate} ]; do sleep 0.05; done; exit 3"
    shop.spec(f"command: ['sh', '-c', '{script}']\nparameters: {{}}\noutputs: []\nfail_fast: true\n", name="fragile")
    shop.run("apply", "specs/fragile.yaml", "--detach")
    until(Path(f"{gate}.open").exists, "the job runs")
    agents = shop.agents
    log = store(shop) / "projects/shop/sweeps/fragile"
    (log / "00000002").write_text('{"kind": "retry", "jobs": 5}')
    (log / "00000003").write_bytes(b"\x1b[2J")
    gate.touch()
    until(lambda: "fragile/00000003" in shop.agent_log, "the agent has met them")
    stop = store(shop) / "projects/shop/stops/fragile/00000001"
    until(stop.exists, "the end is noted")
    assert json.loads(stop.read_text())["at"] == 3
    shop.spec(jobs=2, name="honest")
    shop.run("apply", "specs/honest.yaml")
    assert shop.ledger.executions == 2 and shop.agents == agents
    told = shop.run("status", code=None).stdout
    assert "fragile/00000002: skipped" in told and "fragile/00000003: skipped" in told and "\x1b[2J" not in told
    assert "Traceback" not in shop.agent_log


def test_trees_that_are_too_deep_harm_neither_neighbours_nor_later_agents(shop: Shop) -> None:
    shop.hurry()
    (shop.root / "nest.py").write_text(NEST)
    for name, where, end in (("out", "OUTPUT", 0), ("kept", "CHECKPOINT", 1)):
        command = f"python3 nest.py $MONKEY_{where}_DIR 1500; exit {end}"
        shop.spec(f"command: ['sh', '-c', '{command}']\nparameters: {{}}\noutputs: []\nmax_retries: 1\n", name=name)
    archive_too_deep(shop)
    shop.spec(jobs=4, name="honest")
    shop.run("apply", "--detach")
    until(lambda: shop.states("kept") == {"failed": 1}, "the job has failed twice")
    until(lambda: shop.states("out") == {"succeeded": 1}, "the job has ended")
    until(lambda: shop.states("code") == {"failed": 1}, "the job without code has failed")
    until(lambda: shop.states("honest") == {"succeeded": 4}, "the neighbours have succeeded")
    (job,) = shop.json("list", "jobs", "out")
    assert job["outputs"] == {}
    assert "more than 800 bytes" in shop.run("logs", job["job"]).stdout
    assert "deeper than" in shop.run("info", "c" * 16).stdout
    until(lambda: not shop.agents, "the agent leaves")
    shop.spec(jobs=6, name="honest")
    shop.run("apply", "specs/honest.yaml")
    assert shop.ledger.executions == 7 and "Traceback" not in shop.agent_log


def archive_too_deep(shop: Shop) -> None:
    """Put a sweep into the store whose code is an archive with a file 1,900 directories deep, under its right hash."""
    shop.spec(jobs=1, seconds=0, name="one")
    path, packed = "/".join("d" * 1_900), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(tarfile.TarInfo(path))
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    sha = hash_manifest([ManifestEntry(path, PathKind.FILE, empty)])
    shop.run("apply", "specs/one.yaml")
    (store(shop) / "code" / f"{sha}.tar.gz").write_bytes(gzip.compress(packed.getvalue()))
    forge(shop, "code", "recipe.code", sha, "c" * 16)
