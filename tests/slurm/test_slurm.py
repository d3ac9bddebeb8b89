"""Sweeps on a real Slurm of two hosts, asked for from a laptop: what people do, and what Slurm does to pilots.

The long cases (three walltimes, a daemon killed) are in `tests/slurm/campaign.py`.
"""

from __future__ import annotations

import time

import pytest

from tests.acceptance.shop import until
from tests.acceptance.site import LEDGER
from tests.slurm.cluster import Cluster
from tests.slurm.laptop import Laptop

pytestmark = [pytest.mark.slow, pytest.mark.needs("hosts")]


def test_a_sweep_waits_in_a_full_queue_runs_on_both_nodes_and_leaves_nothing(laptop: Laptop, cluster: Cluster) -> None:
    laptop.providers(cluster={"pilots": 6})
    laptop.sweep("sweep", "cluster", jobs=24)
    assert "machines 0 → 6" in laptop.say("plan")
    laptop.ledger.hold()
    with cluster.taken(*cluster.nodes):
        laptop.apply_twice()
        assert laptop.pilots("cluster") == [("PENDING", "")] * 6, "two that apply ask for no more than one"
        assert laptop.say("list", "instances").count("waits: ") == 6
    laptop.begun(12)
    assert {node for state, node in laptop.pilots("cluster") if state == "RUNNING"} == {"twin1", "twin2"}
    shown = laptop.say("list", "instances")
    assert "on twin1, " in shown and "on twin2, " in shown and " left" in shown
    laptop.ledger.release()
    laptop.await_states("sweep", succeeded=24)
    assert set(laptop.ledger.begins.values()) == {1} and len(laptop.ledger.digests) == 24
    assert not laptop.ledger.overlaps
    assert "begun" in laptop.say("logs", next(iter(laptop.ledger.begins)))
    until(lambda: not cluster.queue(), "pilots without work leave")
    laptop.destroy()


def test_what_slurm_refuses_is_said_with_what_to_do(laptop: Laptop, cluster: Cluster) -> None:
    laptop.providers(cluster={"partition": "closed", "account": "chemistry"})
    laptop.sweep("sweep", "cluster", jobs=2)
    said = laptop.say("plan")
    assert "sbatch refuses it (" in said and "nvalid account" in said and "`account:`" in said
    said = laptop.say("apply", "-y", "--detach", code=1)
    assert "nvalid account" in said and "`account:`" in said and not cluster.queue()
    laptop.providers(cluster={"partition": "tiny", "time": "1h"})
    assert "time: 1h is more than MaxTime" in laptop.say("plan")
    laptop.destroy()


def test_jobs_live_through_a_walltime_preemption_cancellation_and_a_cut(laptop: Laptop, cluster: Cluster) -> None:
    """One story, since its parts wait: a walltime goes by while other fleets are hurt."""
    began = time.time()
    short = {"partition": "tiny", "time": "2m", "pilots": 1}
    laptop.providers(short=short, low={"pilots": 1}, kind={"partition": "kind", "pilots": 1})
    laptop.sweep("walk", "short", jobs=1, command=f"walker.py {LEDGER} 2")
    watching = laptop.shop.start("apply", "-y", "specs/walk.yaml")
    laptop.begun(1)
    preempt(laptop, cluster)
    cancel(laptop, cluster)
    cut_off(laptop, cluster)
    said, _ = watching.communicate(timeout=240)
    assert watching.returncode == 0, said + laptop.say("status", "walk")
    laptop.check_walk(2)
    laptop.check_queries(began)
    laptop.destroy()


def preempt(laptop: Laptop, cluster: Cluster) -> None:
    """Have jobs of somebody with precedence on the node: with a grace, and without one."""
    others = set(laptop.ledger.begins)
    for name in ("low", "kind"):
        laptop.sweep(name, name, jobs=2)
    laptop.ledger.hold()
    laptop.say("apply", "-y", "--detach", "specs/low.yaml", "specs/kind.yaml")
    jobs = laptop.begun(4, besides=others)
    assert laptop.pilots("low") == laptop.pilots("kind") == [("RUNNING", "twin2")]
    with cluster.taken(cluster.other):
        laptop.begun_again(jobs, 2)
        assert laptop.pilots("low") == laptop.pilots("kind") == [("RUNNING", "twin1")]


def cancel(laptop: Laptop, cluster: Cluster) -> None:
    """Have a person cancel a pilot: it does not come again, and its jobs do with another."""
    [label] = {name for name in cluster.queue("%j") if name.startswith("monkey-shop-low-")}
    cluster.run("scancel", "-n", label)
    until(lambda: not laptop.pilots("low"), "it is gone")
    assert laptop.states("low") == {"queued": 2}
    laptop.say("apply", "-y", "--detach", "specs/low.yaml")
    until(lambda: laptop.pilots("low") == [("RUNNING", "twin2")], "another comes")
    until(lambda: laptop.states("low") == {"running": 2}, "its jobs begin", step=1.0)


def cut_off(laptop: Laptop, cluster: Cluster) -> None:
    """Cut the node off from Slurm, which starts another pilot; the agent there still has the store and its jobs."""
    begun = dict(laptop.ledger.begins)
    walkers = set(laptop.steps())  # their time is over when it is
    cluster.other.cut()
    until(lambda: ("RUNNING", "twin2") not in laptop.pilots("low"), "Slurm gives the node up")
    laptop.ledger.release()
    laptop.await_states("low", succeeded=2)
    laptop.await_states("kind", succeeded=2)
    again = {job for job, times in laptop.ledger.begins.items() if times != begun.get(job)}
    assert again <= walkers, "no job of a living agent is taken over"
    cluster.other.mend()
    until(lambda: cluster.run("sinfo", "-h", "-n", "twin2", "-p", "high", "-o", "%T").strip() == "idle", "it is back")
    until(lambda: not laptop.pilots("low"), "no pilot stays without work")
