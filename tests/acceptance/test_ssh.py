"""A whole sweep with its store on an SSH host, by one line of monkey.yaml, while its connections are cut."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop, until, work_through
from tests.sshd import Sshd, serve

pytestmark = pytest.mark.slow


@pytest.fixture
def host(require: Callable[[str], str], tmp_path: Path) -> Iterator[Sshd]:
    """Return a server of the test's own, whose connections may be cut."""
    require("sshd")
    with serve(tmp_path / "host") as server:
        yield server


@pytest.fixture
def ssh_shop(host: Sshd, make_shop: Callable[..., Shop], tmp_path: Path) -> Shop:
    """Return a project whose store is on the host."""
    shop = make_shop()
    shop.env["HOME"] = str(host.home)
    (shop.root / "monkey.yaml").write_text(f"project: shop\nstore: ssh://there{tmp_path}/far store\n")
    return shop


def test_a_sweep_runs_with_its_store_on_a_host(ssh_shop: Shop, host: Sshd, tmp_path: Path) -> None:
    work_through(ssh_shop)
    # The host itself sees the same store, as a directory.
    (ssh_shop.root / "monkey.yaml").write_text(f"project: shop\nstore: {tmp_path}/far store\n")
    assert [row["state"] for row in ssh_shop.json("results", "sweep")] == ["succeeded"] * 12
    assert ssh_shop.ledger.executions == 12


def test_a_sweep_survives_cut_connections(ssh_shop: Shop, host: Sshd) -> None:
    jobs, cuts = 60, 0
    ssh_shop.spec(jobs=jobs, seconds=0.3)
    apply = ssh_shop.start("apply")
    for share in (0.1, 0.25, 0.4, 0.6, 0.8):
        until(lambda share=share: len(ssh_shop.ledger.digests) >= share * jobs, f"work goes on after {cuts} cuts")
        cuts += bool(host.kill_sessions())
    out, err = apply.communicate(timeout=120)
    assert apply.returncode == 0, out + err + ssh_shop.agent_log
    assert cuts >= 4
    ledger = ssh_shop.ledger
    assert not ledger.overlaps
    assert len(ledger.begins) == ledger.executions == jobs, "a cut is no reason to run a job twice"
    assert ssh_shop.states() == {"succeeded": jobs}
    rows = ssh_shop.json("list", "jobs", "sweep")
    assert all(row["outputs"]["result.txt"] in ledger.digests[row["job"]] for row in rows)


def test_a_host_that_is_away_costs_the_time_that_it_is_away(ssh_shop: Shop, host: Sshd) -> None:
    """Nobody answers for a while; running jobs go on, and nothing is run twice."""
    jobs = 8
    ssh_shop.spec(jobs=jobs, seconds=2)
    ssh_shop.run("apply", "--detach")
    until(lambda: ssh_shop.ledger.executions >= 2, "work begins")
    host.stop()
    back = threading.Timer(20, host.start)
    back.start()
    try:
        until(lambda: len(ssh_shop.ledger.digests) >= min(2, os.cpu_count() or 1), "running jobs go on")
    finally:
        back.join()
    ssh_shop.run("apply", patience=180)
    assert not ssh_shop.ledger.overlaps
    assert ssh_shop.ledger.executions == jobs
    assert ssh_shop.states() == {"succeeded": jobs}
    for row in ssh_shop.json("results", "sweep"):
        assert 1e6 < row["usage"]["memory_bytes"] < 1e9 and 0 < row["usage"]["cpus"] < 1, "it slept two seconds"


def test_what_is_wrong_is_said_with_the_fix(ssh_shop: Shop, host: Sshd) -> None:
    ssh_shop.spec(jobs=1)
    key = host.known_hosts.read_text()
    host.known_hosts.write_text("")
    said = ssh_shop.run("apply", code=1).stderr
    assert "is not known here" in said and "hint" in said
    host.known_hosts.write_text(key)
    (host.home / "authorized_keys").write_text("")
    assert "ssh-copy-id" in ssh_shop.run("plan", code=1).stderr
    host.stop()
    assert "refuses connections" in ssh_shop.run("plan", code=1).stderr
    assert ssh_shop.ledger.executions == 0
