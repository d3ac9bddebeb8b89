"""Jobs that failed for good before: what a plan announces of them is what agents run of them, by the ledger."""

from __future__ import annotations

from typing import Any

from tests.acceptance.shop import Shop, until


def write(shop: Shop, name: str, options: str = "") -> None:
    """Write a spec of two jobs that begin, and fail since their seconds are no number."""
    shop.spec(f"command: [python3, job.py, '{shop.ledger.directory}', x, '{{i}}'{options}]\n", jobs=2, name=name)


def planned(shop: Shop, name: str) -> tuple[dict[str, Any], int]:
    """Return the plan of the sweep, and the number of jobs that it announces to the fleet."""
    told = shop.json("plan")
    return next(one for one in told["sweeps"] if one["name"] == name), sum(part["jobs"] for part in told["fleets"])


def test_jobs_that_failed_in_another_sweep_run_by_retry_alone(shop: Shop) -> None:
    shop.hurry()
    write(shop, "sweep")
    shop.run("apply", code=1)
    assert shop.ledger.executions == 2
    write(shop, "other")
    sweep, announced = planned(shop, "other")
    assert sweep["jobs"]["new"] == 0 and announced == 0 and sweep["failed_before"] == {"sweep": 2}
    said = shop.run("plan").stdout
    assert "2 jobs failed before (2 in sweep sweep): apply runs none" in said
    assert "Plan: 2 kept, 2 failed before." in said
    shop.run("plan", "-o", "plan.json")
    shop.run("apply", "plan.json", code=1)
    assert shop.ledger.executions == 2 and shop.states("other") == {"failed": 2}
    shop.run("retry", "other")
    until(lambda: shop.ledger.executions == 4, "retried jobs run")
    assert set(shop.ledger.begins.values()) == {2}


def test_change_that_is_taken_back_runs_nothing_that_failed(shop: Shop) -> None:
    shop.hurry()
    write(shop, "sweep")
    shop.run("apply", code=1)
    write(shop, "sweep", ", again")
    shop.run("apply", code=1)
    assert shop.ledger.executions == 4
    write(shop, "sweep")
    sweep, announced = planned(shop, "sweep")
    assert sweep["jobs"] == {"new": 0, "stale": 0, "kept": 0, "removed": 2} and announced == 0
    assert sweep["failed_before"] == {"": 2}
    shop.run("apply", code=1)
    assert shop.ledger.executions == 4
    shop.run("retry", "sweep")
    until(lambda: shop.ledger.executions == 6, "retried jobs run")


def test_fail_fast_ends_a_sweep_for_an_old_failure_and_retry_opens_it_as_the_plan_says(shop: Shop) -> None:
    shop.hurry()
    repaired = shop.ledger.directory / "repaired"
    script = f"test -e {repaired} && exec python3 job.py {shop.ledger.directory} 0.05 {{i}}"
    command = f"command: [sh, -c, '{script}']\n"
    shop.spec(command, jobs=1)
    shop.run("apply", code=1)
    repaired.touch()
    shop.spec(command + "fail_fast: true\n", jobs=2, name="other")
    sweep, announced = planned(shop, "other")
    assert announced == sweep["jobs"]["new"] == 1
    assert "1 job failed before, which may cancel the sweep (fail_fast): once applied, `monkey retry other` tries" in (
        " ".join(sweep["notes"])
    )
    shop.ledger.hold()
    assert "fail_fast: job" in shop.run("apply", code=1).stdout
    assert shop.states("other") == {"failed": 1, "cancelled": 1}
    shop.ledger.release()
    shop.run("retry", "other")
    until(lambda: shop.states("other") == {"succeeded": 2}, "retried jobs succeed")
