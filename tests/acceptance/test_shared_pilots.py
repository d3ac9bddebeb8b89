"""Two people who share a store and pilots: what runs there is what the last of them who applied allows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop, until
from tests.local_slurm import LocalSlurm, run_slurm

pytestmark = [pytest.mark.slow, pytest.mark.needs("slurm")]

PROJECT = """\
project: shop
store: {store}
providers:
  cluster: {{type: slurm, time: 10m, pilots: 1, cpus: 2, idle_timeout: 2s,
    store_path: {store}, workdir: {base}/work, scratch: {base}/scratch}}
"""


@pytest.fixture
def slurm() -> Iterator[LocalSlurm]:
    with (
        tempfile.TemporaryDirectory(prefix="mk-slurm-", dir="/tmp", ignore_cleanup_errors=True) as home,
        run_slurm(Path(home)) as cluster,
    ):
        yield cluster


def join(base: Path, name: str, slurm: LocalSlurm) -> Shop:
    """Return the clone of one of those who share the project and a group's account, and a sweep of their name."""
    shop = Shop(base / name)
    shop.env |= slurm.environment
    (shop.root / "monkey.yaml").write_text(PROJECT.format(store=base / "store", base=base))
    shop.spec("provider: cluster\n", jobs=2, name=name)
    return shop


def test_pilots_obey_whom_the_last_to_apply_allows(slurm: LocalSlurm, tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    alice, bob, carol = (join(tmp_path, name, slurm) for name in ("alice", "bob", "carol"))
    bob.ledger.hold()
    bob.run("apply", "-y", "--detach")
    until(lambda: bob.ledger.executions == 2, "his jobs begin on the pilot")
    assert "other signers" in alice.run("plan").stdout
    own = tmp_path / "carol/home/.config/monkey"
    own.mkdir(parents=True)
    (own / "allowed_signers").write_text(f"bob {bob.json('trust')['own']['key']}\n")
    assert "other signers" not in carol.run("plan").stdout, "as in CI: a plan needs no key"
    assert [path.name for path in own.iterdir()] == ["allowed_signers"], "and makes none"
    alice.run("apply", "-y")
    assert alice.ledger.executions == 2, "hers run there, once his have left"
    bob.ledger.release()
    said = alice.run("status").stdout
    assert "sweeps/bob/00000001: skipped" in said, said
    assert bob.states("bob") == {"queued": 2}
    until(lambda: not slurm.queue(), "the pilot has nothing to do")
    assert bob.ledger.executions == 2, "what nobody allowed did not run again"
    alice.run("trust", bob.json("trust")["own"]["key"], "--name", "bob")
    alice.run("apply", "-y")
    until(lambda: bob.states("bob") == {"succeeded": 2}, "her pilot runs his work")
    assert not [line for line in bob.ledger.lines if line.what == "overlap"]
