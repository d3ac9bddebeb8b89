"""Preemption by quality of service, as large clusters have it: with a real database of accounts, and two graces.

MONKEY_LONG=1 asks for it: a database is installed on the login node.
"""

from __future__ import annotations

import os
import time

import pytest

from tests.acceptance.shop import until
from tests.acceptance.site import LEDGER
from tests.slurm.accounting import keep_accounts
from tests.slurm.cluster import Cluster
from tests.slurm.laptop import Laptop

LONG = bool(os.environ.get("MONKEY_LONG"))
pytestmark = [
    *(pytest.mark.slow, pytest.mark.needs("hosts")),
    pytest.mark.skipif(not LONG, reason="MONKEY_LONG=1: installs a database for Slurm, three minutes"),
]
#: How often each job is preempted: more often than a job may fail, or be released by a walltime.
TIMES = 3


def test_preemption_by_quality_of_service_loses_nothing_and_counts_against_no_job(
    laptop: Laptop, cluster: Cluster
) -> None:
    """Both with no grace and with 20 s of it; a job that saves nothing, and one that goes on from its checkpoint."""
    with keep_accounts(cluster, scavenger=0, kind=20):
        check_init(laptop)
        fleets = {name: {"qos": name, "account": "lab", "pilots": 1} for name in ("scavenger", "kind")}
        laptop.providers(**fleets)
        for name in fleets:
            laptop.sweep(name, name, jobs=2, cpus=0.5)
            laptop.sweep(f"walk-{name}", name, jobs=1, command=f"walker.py {LEDGER} {TIMES + 1}", cpus=0.5)
        laptop.ledger.hold()
        laptop.say("apply", "-y", "--detach")
        jobs = laptop.begun(6)
        for turn in range(TIMES):
            await_steps(laptop)
            (here,) = {node for fleet in fleets for _, node in laptop.pilots(fleet)}
            began = time.monotonic()
            taken = next(node for node in cluster.nodes if node.name == here)
            with cluster.taken(taken, by=("-A", "lab", "-q", "high")):
                laptop.begun_again(jobs, turn + 2)
                print(f"{here} taken: all work again after {time.monotonic() - began:.0f} s")
        laptop.ledger.release()
        for name in fleets:
            laptop.await_states(name, succeeded=2)
            laptop.await_states(f"walk-{name}", succeeded=1)
        check_ledger(laptop, jobs)
        until(lambda: not cluster.queue(), "pilots without work leave")
        laptop.destroy()


def check_init(laptop: Laptop) -> None:
    """Have `init` name the account that the database has for this user."""
    laptop.say("init", "new", "--provider", "slurm", "--login", "twin1")
    assert "# account: lab  # yours: lab;" in (laptop.shop.root / "new/monkey.yaml").read_text()


def await_steps(laptop: Laptop) -> None:
    """Wait until each walker has got on in its newest life: it has something to save."""
    got_on = lambda lives: len(set(lives[max(lives)])) >= 30  # noqa: E731
    until(lambda: all(map(got_on, laptop.steps().values())), "walkers get on")


def check_ledger(laptop: Laptop, jobs: set[str]) -> None:
    """Have each job begun once more than it was preempted, alone each time, and each attempt but the last released."""
    assert {laptop.ledger.begins[job] for job in jobs} == {TIMES + 1} and set(laptop.ledger.begins) == jobs
    assert not laptop.ledger.overlaps
    steps, found = laptop.steps(), {}
    for sweep in ("scavenger", "kind", "walk-scavenger", "walk-kind"):
        for row in laptop.shop.json("list", "jobs", sweep):
            about = laptop.shop.json("info", f"{sweep}/{row['job']}")
            ends = [(each["outcome"], each["reason"]) for each in about["attempts"]]
            lives = {life: (seen[0], seen[-1]) for life, seen in steps.get(row["job"], {}).items()}
            found[sweep, row["job"]] = ends, lives
    for ends, lives in found.values():
        assert [outcome for outcome, _ in ends] == [*["released"] * TIMES, "succeeded"], found
        assert all(0 < lives[life][0] <= lives[life - 1][1] for life in lives if life > 1), found
