"""Jobs that are longer than their pilots' time: given up where they save nothing, and continued where they do."""

from __future__ import annotations

import time

import pytest

from monkey.fleet.agent_state import NO_WORK, TAKEN_BACK
from tests.acceptance.shop import PATIENCE, Shop, until

pytestmark = pytest.mark.slow

#: Seconds that an agent works here before it leaves. By what it is told it has less, so half of that is soon over.
WORKS, TOLD = 8.0, 2.0


def run_pilot(shop: Shop) -> int:
    """Run an agent until its time is over, or no work is left; return what it exits with."""
    store, leave_at = str(shop.root / ".monkey/store"), str(time.time() + WORKS)
    place = ["--store", store, "--project", "shop", "--idle-timeout", "0.5"]
    agent = shop.start("agent", *place, "--leave-at", leave_at, "--pilot-time", str(TOLD))
    agent.communicate(timeout=PATIENCE)
    return agent.returncode


def hold_a_job(shop: Shop, command: str = "") -> None:
    """Have a sweep of one job, which does not end by itself, and no agent."""
    shop.ledger.hold()
    shop.spec(command, jobs=1)
    shop.run("apply", "--detach")
    until(lambda: shop.ledger.lines, "the job begins")
    shop.kill_all()


def test_a_job_that_saves_nothing_is_given_up_after_two_pilots_and_comes_back_by_retry(shop: Shop) -> None:
    hold_a_job(shop)
    assert [run_pilot(shop), run_pilot(shop), run_pilot(shop)] == [TAKEN_BACK, TAKEN_BACK, NO_WORK]
    (job,) = shop.json("list", "jobs", "sweep")
    assert job["state"] == "failed"
    assert job["reason"] == "ended with its pilot's time (2s) twice and saved nothing; save checkpoints, or raise time"
    assert sum(shop.ledger.begins.values()) == 3, "of the agent that was killed, and of two pilots"
    shop.ledger.release()
    shop.run("retry", "sweep")
    until(lambda: shop.states() == {"succeeded": 1}, "it ends")
    assert not [line for line in shop.ledger.lines if line.what == "overlap"]


def test_a_job_that_saves_checkpoints_is_not_given_up(shop: Shop) -> None:
    job = f"python3 job.py '{shop.ledger.directory}' 0.05 {{i}}"
    hold_a_job(shop, f'command: date +%N > "$MONKEY_CHECKPOINT_DIR/at" && {job}\ncheckpoint_every: 1s\n')
    assert [run_pilot(shop) for _ in range(3)] == [TAKEN_BACK] * 3
    assert shop.states() == {"queued": 1}


def test_a_job_whose_timeout_does_not_fit_is_not_claimed(shop: Shop) -> None:
    hold_a_job(shop, "timeout: 1h\n")
    begun = sum(shop.ledger.begins.values())
    assert run_pilot(shop) == NO_WORK, "no pilot of this kind will ever have the time"
    assert sum(shop.ledger.begins.values()) == begun
    assert "its jobs may take 1h (timeout)" in str(shop.json("status"))
