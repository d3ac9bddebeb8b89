"""stop_when, as a user meets it: real agents, real jobs, a ledger outside the store that says what ran how often."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.shop import Shop, until

pytestmark = pytest.mark.slow

#: Notes that it ran; job 0 shows a NaN and job 1 a good value, and both stay; the others end.
TRAIN = """\
import sys, time, uuid
from pathlib import Path
import monkey
ledger, i, patience = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
(ledger / f"{i}-{uuid.uuid4().hex}").write_text("began")
Path("result.txt").write_text(str(i))
monkey.log({"loss": float("nan") if i == 0 else 0.5, "acc": 0.95 if i == 1 else 0.01 * i}, step=7)
time.sleep(1000 if i < 2 else patience)
"""


def spec(shop: Shop, rules: str, *, jobs: int = 4, seconds: float = 0) -> None:
    (shop.root / "train.py").write_text(TRAIN)
    command = f"command: [python3, train.py, '{shop.ledger.directory}', '{{i}}', '{seconds}']\n"
    metric = "metric: {name: acc, goal: maximize}\ngrace: 1s\nmax_retries: 2\n"
    shop.spec(f"{command}{metric}stop_when: [{rules}]\n", jobs=jobs)


def ran(shop: Shop) -> dict[int, int]:
    """Return how often each job began."""
    names = [path.name.partition("-")[0] for path in shop.ledger.directory.iterdir()]
    return {int(name): names.count(name) for name in sorted(set(names))}


def rows(shop: Shop) -> dict[int, dict[str, Any]]:
    return {row["parameters"]["i"]: row for row in shop.json("list", "jobs", "sweep")}


NAN, GOOD = "{metric: loss, is: nan}", "{metric: acc, above: 0.9}"


def test_jobs_end_by_their_conditions_and_go_on_when_these_change(shop: Shop) -> None:
    spec(shop, f"{NAN}, {GOOD}")
    said = shop.run("apply").stdout
    assert shop.states() == {"succeeded": 2, "stopped": 2} and ran(shop) == {0: 1, 1: 1, 2: 1, 3: 1}
    assert "2 succeeded, 2 stopped." in said
    found = rows(shop)
    assert found[0]["reason"] == "loss is nan at step 7" and found[0]["failures"] == 0
    assert found[1]["reason"] == "acc is 0.95, above 0.9, at step 7" and found[1]["metrics"]["acc"]["last"] == 0.95
    assert "STOPPED" in shop.run("status").stdout
    # The job that reached the bound is the best; the one that diverged follows behind all.
    assert "best acc 0.95 (i=1)" in said
    ranked = shop.json("results", "sweep")
    assert [(row["parameters"]["i"], row["counts"]) for row in ranked] == [(1, True), (3, True), (2, True), (0, False)]
    assert (ranked[0]["job"], ranked[0]["state"]) == (found[1]["job"], "stopped")
    shop.run("fetch", "sweep", "--top", "1", "-o", "best")
    assert (shop.root / "best" / found[1]["job"] / "result.txt").read_text() == "1"
    # Nothing of it is a failure, and nothing is left to do.
    assert "nothing to do" in shop.run("apply").stdout and ran(shop) == {0: 1, 1: 1, 2: 1, 3: 1}
    assert "nothing to retry" in shop.run("retry", "sweep").stdout
    # A bound that it would have met as well changes nothing; one that it would not opens just that job.
    spec(shop, f"{NAN}, {{metric: acc, above: 0.94}}")
    plan = shop.run("plan").stdout
    assert "stop_when loss is nan; acc above 0.9 → loss is nan; acc above 0.94" in plan and "go on" not in plan
    shop.run("apply", "--yes")
    assert ran(shop)[1] == 1
    spec(shop, f"{NAN}, {{metric: acc, above: 0.99}}, {{metric: loss, not_reported_for: 2s}}")
    assert "stop_when changes: 1 stopped job goes on" in shop.run("plan").stdout
    shop.run("apply", "--yes")
    assert ran(shop) == {0: 1, 1: 2, 2: 1, 3: 1} and rows(shop)[1]["reason"] == "loss was not reported for 2s"
    # Whoever wants it all the same says so.
    shop.run("retry", "sweep", "--stopped")
    shop.run("status", "-w", "sweep")
    assert ran(shop) == {0: 2, 1: 3, 2: 1, 3: 1} and shop.states() == {"succeeded": 2, "stopped": 2}


def test_a_goal_ends_the_sweep_once_and_resume_goes_on(shop: Shop) -> None:
    spec(shop, "{metric: acc, above: 0.9, scope: sweep}", jobs=30, seconds=0.3)
    done = shop.run("apply").stdout
    began, found = ran(shop), rows(shop)
    goal = f"acc is 0.95, above 0.9, at step 7 (job {found[1]['job']})"
    assert f"It reached its goal ({goal}); `monkey resume sweep` goes on" in done
    assert "best acc 0.95 (i=1)" in done
    # Job 0 would have stayed for long: it was released, or never begun.
    assert {found[i]["reason"] for i in (0, 1)} == {f"stopped: {goal}", goal.partition(" (")[0]}
    assert shop.states().keys() <= {"succeeded", "stopped"} and began[1] == 1
    (told,) = shop.json("status")["sweeps"]
    assert (told["state"], told["cancelled"]) == ("stopped", goal)
    assert f"stopped ({goal}): a new revision or `monkey resume sweep` opens it again" in shop.run("plan").stdout
    until(lambda: not shop.agents, "nothing is left to do, and the agent leaves")
    assert ran(shop) == began
    # What had not ended goes on, and the goal that was reached does not end it again.
    shop.run("resume", "sweep")
    until(lambda: shop.states().get("running") == 1 and shop.states()["succeeded"] == 28, "all but job 0 end")
    assert ran(shop)[1] == 1 and ran(shop)[0] == began.get(0, 0) + 1
    shop.run("cancel", "sweep")
