"""Machines by `monkey plan`, `apply`, `list instances`, `audit` and `destroy`: real hosts, the real Pulumi."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.acceptance.lab_site import LabSite, lines
from tests.acceptance.shop import until

pytestmark = pytest.mark.slow
NAMES = ("h1", "h2", "h3")


def two_apply_the_same(site: LabSite) -> str:
    """Apply by two people at once; returns what both were told."""
    with ThreadPoolExecutor(2) as pool:
        said = "".join(pool.map(lambda _: site.apply(), range(2)))
    assert len(lines(said, "sweep: revision 1 appended")) == 1 and "error" not in said
    return said


def test_a_fleet_from_its_plan_to_its_end(lab_site: LabSite) -> None:
    site = lab_site
    machines = site.hosts(*NAMES)
    before = site.left(*machines)
    site.providers(*NAMES, max_slots=1)
    ledgers = [site.ledger(machine) for machine in machines]
    for ledger in ledgers:
        ledger.hold()
    site.sweep("resources: {memory: 64MiB}\n", jobs=6)
    said = site.run("plan")
    assert "memory: monkey looks at jobs, and ends one a moment after" in said, "cron keeps the agents of two"
    assert "lab: 6 jobs to run, no agents at work, machines 0 → 3" in said
    for name, keeping in zip(NAMES, ("systemd", "cron", "cron"), strict=True):
        assert lines(said, f"lab/{name}") == [
            f"+ lab/{name}: agent, kept alive by {keeping}, begun again after a reboot"
        ]
    assert site.left(*machines) == before and not site.calls, "a plan changes nothing"

    said = two_apply_the_same(site)
    assert [len(lines(said, f"lab: {name}: agent started")) for name in NAMES] == [1, 1, 1]
    until(lambda: all(ledger.executions == 1 for ledger in ledgers), "every host works")

    calls = site.calls
    assert "No changes: 6 kept" in site.run("plan", "--detailed-exitcode")
    assert "Nothing to change" in site.apply()
    assert site.calls == calls, "nobody needs Pulumi to see that nothing changes"

    rows = site.shop.json("list", "instances")
    assert [(row["fleet"], row["machine"], row["state"], row["jobs"]) for row in rows] == [
        ("lab", name, "alive", 1) for name in NAMES
    ]
    site.audit()
    for ledger in ledgers:
        ledger.release()
    until(lambda: [row["state"] for row in site.rows()] == ["succeeded"] * 6, "all jobs end")
    assert sum(ledger.executions for ledger in ledgers) == 6

    said = site.run("destroy", code=1)
    assert "--yes" in said and site.calls == calls
    said = site.run("destroy", "-y")
    assert [len(lines(said, f"lab: {name}: everything taken away")) for name in NAMES] == [1, 1, 1]
    assert site.left(*machines) == before and not site.leftovers
    site.audit()
    assert not site.shop.json("list", "instances")
    assert "no machines" in site.run("destroy", "-y")
