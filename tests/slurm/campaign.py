"""The long cases of pilots on Slurm, run by hand as root: `python -m pytest tests/slurm/campaign.py`."""

from __future__ import annotations

import time

import pytest

from tests.acceptance.shop import until
from tests.acceptance.site import LEDGER
from tests.slurm.cluster import Cluster
from tests.slurm.laptop import Laptop

pytestmark = [pytest.mark.slow, pytest.mark.needs("hosts")]


def test_a_sweep_lives_through_three_walltimes(laptop: Laptop, cluster: Cluster) -> None:
    began = time.time()
    laptop.providers(short={"partition": "tiny", "time": "2m", "pilots": 1})
    laptop.sweep("walk", "short", jobs=1, command=f"walker.py {LEDGER} 4")
    laptop.sweep("stubborn", "short", jobs=1, command="stubborn.py")
    laptop.say("apply", "-y", "--detach", "specs/stubborn.yaml")
    watching = laptop.shop.start("apply", "-y", "specs/walk.yaml")
    laptop.begun(2)
    said, _ = watching.communicate(timeout=500)
    assert watching.returncode == 0, said + laptop.say("status", "walk")
    laptop.check_walk(4)
    laptop.await_states("stubborn", failed=1)
    assert "ended with its pilot's time (2m) twice and saved nothing" in laptop.say("status", "stubborn")
    laptop.check_queries(began, least=6)
    laptop.destroy()


def test_a_daemon_that_is_killed_and_comes_again_loses_no_job(laptop: Laptop, cluster: Cluster) -> None:
    """Slurm starts another pilot. The daemon that comes again kills the first one's agent."""
    laptop.providers(low={"pilots": 1})
    laptop.sweep("lost", "low", jobs=6, cpus=0.5)
    laptop.ledger.hold()
    laptop.say("apply", "-y", "--detach", "specs/lost.yaml")
    first = laptop.begun(4)
    assert laptop.pilots("low") == [("RUNNING", "twin2")]
    cluster.kill_node(cluster.other)
    laptop.begun(6)
    assert laptop.pilots("low") == [("RUNNING", "twin1")]
    cluster.start_node(cluster.other)
    until(lambda: "monkey" not in cluster.other.processes(), "what Slurm does not know ends")
    until(lambda: sum(laptop.ledger.begins[job] == 2 for job in first) >= 2, "two are taken over")
    laptop.ledger.release()
    laptop.await_states("lost", succeeded=6)
    assert all(laptop.ledger.begins[job] == 2 for job in first)
    assert not laptop.ledger.overlaps
    laptop.destroy()
