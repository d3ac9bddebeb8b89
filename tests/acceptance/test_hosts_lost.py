"""Three hosts at one sweep, each of which is lost in another way: every job is recorded, none runs twice at once."""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import dataclass

import pytest

from monkey.errors import HostAway
from tests.acceptance.shop import until
from tests.acceptance.site import Site
from tests.hosts import Machine

JOBS = 60
#: Seconds within which others have taken over what a lost agent held: TAKE, a look, and what comes before a job.
TAKEOVER = 110.0


@dataclass(frozen=True)
class Execution:
    """One execution of a job, in seconds since the hosts' kernel, which is one, was booted; `end`: None, it was cut."""

    job: str
    host: str
    begin: float
    end: float | None


def executions(site: Site, machines: list[Machine]) -> list[Execution]:
    """Return all executions, from the hosts' ledgers."""
    found = []
    for machine in machines:
        lines = site.ledger(machine).lines
        ends = {(line.job, line.pid): line.at for line in lines if line.what == "end"}
        begun = (line for line in lines if line.what == "begin")
        found += [Execution(line.job, machine.name, line.at, ends.get((line.job, line.pid))) for line in begun]
    return sorted(found, key=lambda execution: execution.begin)


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("MONKEY_LONG"), reason="waits for leases")
def test_hosts_that_are_lost_cost_no_job(site: Site) -> None:
    names = ("h1", "h2", "h3")
    machines = site.hosts(*names)
    cut, killed, rebooted = machines
    site.spec(jobs=JOBS, seconds=2)
    site.converge(*names, max_slots=2)
    until(lambda: all(len(site.ledger(machine).digests) >= 2 for machine in machines), "every host works")
    lost_at = time.clock_gettime(time.CLOCK_BOOTTIME)
    cut.cut()
    killed.within("pkill", "-KILL", "-f", "/bundles/.*/[0-9]+$")
    rebooted.reboot()
    until(lambda: [row["state"] for row in site.rows()] == ["succeeded"] * JOBS, "every job is recorded", 300)
    with pytest.raises(HostAway):
        site.observe("h1")
    cut.mend()
    assert site.observe("h2").living is None, "somebody has to begin it again"
    assert site.observe("h3").living is not None
    assert all(seen.living for seen in site.converge(*names, max_slots=2))
    all_of_them = executions(site, machines)
    by_job = {job: list(of_it) for job, of_it in itertools.groupby(sorted(all_of_them, key=_job), key=_job)}
    assert len(by_job) == JOBS
    for of_it in by_job.values():
        for one, two in itertools.pairwise(sorted(of_it, key=lambda execution: execution.begin)):
            assert one.end is None or one.end <= two.begin, (one, two)
    again = [two for of_it in by_job.values() for two in of_it[1:]]
    assert again and all(two.begin - lost_at < TAKEOVER for two in again), (lost_at, again)


def _job(execution: Execution) -> str:
    return execution.job
