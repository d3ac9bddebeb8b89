"""The cluster of the stories: who its users are, and what it counts."""

from __future__ import annotations

import subprocess
import time

import pytest

from tests.acceptance.shop import until
from tests.hosts import Lab
from tests.slurm.cluster import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.needs("hosts")]


def log_in(lab: Lab, command: str) -> str:
    """Return what a command prints on the login node, on both outputs."""
    words = ["ssh", "-F", str(lab.config), "twin1", command]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def submit(lab: Lab, options: str, script: str) -> str:
    """Submit a job as a user does; return its number."""
    return log_in(lab, f"sbatch --parsable {options} -o /dev/null --wrap='{script}'").strip()


def test_a_user_submits_and_is_counted(lab: Lab, cluster: Cluster) -> None:
    began = time.time()
    assert submit(lab, "--array=0-3 --gres=gpu:fake:1", "hostname > ~/seen-$SLURM_JOB_GPUS-$SLURM_JOB_ID").isdigit()

    def read_seen() -> list[str]:
        return [path.read_text().strip() for path in cluster.home.glob("seen-*") if path.stat().st_size]

    until(lambda: len(read_seen()) == 4, "all run")
    assert {*read_seen()} <= {"twin1", "twin2"}
    assert {path.stat().st_uid for path in cluster.home.glob("seen-*")} == {cluster.user} != {0}
    assert not cluster.list_queries(began), "administrators are not counted"
    log_in(lab, "squeue --me; sinfo; rm seen-*")
    assert [query.what for query in cluster.list_queries(began)] == ["REQUEST_JOB_USER_INFO", "REQUEST_NODE_INFO"]
    assert "Invalid account" in log_in(lab, "sbatch -p closed -A chemistry --wrap=true")
