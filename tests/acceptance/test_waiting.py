"""Jobs whose environment hangs or does not build: they can be cancelled, and what the build said can be read."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop, until

pytestmark = pytest.mark.slow

HANGS = """\
environment:
  setup: |
    echo $$ >> {0}/setups
    (setsid sh -c 'echo $$ >> {0}/orphans; exec sleep 1000' &)
    sleep 1000
"""


def numbers(file: Path) -> list[int]:
    """Return the processes that wrote their number there."""
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def gone(*files: Path) -> bool:
    """Say whether none of the processes that wrote their number lives."""
    return not [pid for file in files for pid in numbers(file) if Path(f"/proc/{pid}/cwd").exists()]


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_a_setup_that_hangs_ends_with_the_last_job_that_wants_it(shop: Shop) -> None:
    shop.spec(HANGS.format(shop.ledger.directory), jobs=3)
    shop.run("apply", "--detach")
    setups, orphans = shop.ledger.directory / "setups", shop.ledger.directory / "orphans"
    until(lambda: numbers(setups) and numbers(orphans), "the setup hangs")
    shop.run("cancel", "sweep")
    until(lambda: gone(setups, orphans), "all of the setup is gone", 20)
    until(lambda: not shop.states().get("running"), "the jobs are released", 20)
    assert not list(Path(shop.env["XDG_CACHE_HOME"]).glob("monkey/environments/*/bin"))
    # It is begun anew, and the agent leaves in the middle of it when it is asked to.
    shop.run("resume", "sweep")
    until(lambda: len(numbers(setups)) == len(numbers(orphans)) == 2, "the setup hangs again")
    (agent,) = shop.agents
    os.kill(agent, signal.SIGTERM)
    until(lambda: not shop.processes(), "the agent has left, and nothing of it is here", 20)
    assert gone(setups, orphans)
    assert not shop.ledger.begins


def test_the_log_of_a_build_that_failed_is_read_like_a_job_s(shop: Shop) -> None:
    setup = "for i in $(seq 200); do echo line $i; done; echo error: no such mirror; exit 7"
    shop.spec(f"environment:\n  setup: |\n    {setup}\n", jobs=2)
    shop.run("apply", code=1)
    shown = [shop.run("logs", job["job"]) for job in shop.json("list", "jobs", "sweep")]
    whole = next(said for said in shown if "line 1\n" in said.stdout)
    assert whole.stdout.endswith("line 200\nerror: no such mirror\n")
    told = shop.run("info", shop.json("list", "jobs", "sweep")[0]["job"]).stdout
    assert "could not set the environment up (exit code 7): error: no such mirror" in told
    # The other job's own log, or a word whose it is.
    assert all("line 1\n" in said.stdout or "whole log: monkey logs" in said.stderr for said in shown)
