"""kill -9 of `monkey apply`, of Pulumi and of its plugins at random moments: the next apply makes everything whole."""

from __future__ import annotations

import os
import random
import time

import pytest

from tests.acceptance.lab_site import LabSite
from tests.acceptance.shop import PATIENCE, until

pytestmark = pytest.mark.slow
LONG = bool(os.environ.get("MONKEY_LONG"))
KILLS = 20 if LONG else 2
#: Kills between two looks at whether everything converges.
STRETCH = 4 if LONG else 2
#: Seconds over which kills are spread at first, and at least; and at most, lest one that had to wait slow down all.
LEAST, MOST = 8.0, 30.0
NAMES = ("h1", "h2", "h3")


def test_an_apply_that_is_killed_anywhere_is_mended_by_the_next(lab_site: LabSite) -> None:
    site = lab_site
    machines = site.hosts(*NAMES)
    before = site.left(*machines)
    for machine in machines:
        site.ledger(machine).hold()
    site.sweep(jobs=6)
    seed = random.SystemRandom().randrange(10_000)
    print(f"seed {seed}")
    dice, cut, tries, lasts = random.Random(seed), 0, 0, LEAST
    # How many end before they are killed depends on the machine; those are not counted.
    while cut < KILLS:
        tries += 1
        assert tries <= 5 * KILLS, "they end before they are killed: nothing was shown"
        site.providers(*dice.sample(NAMES, dice.randrange(2, 4)), max_slots=dice.randrange(1, 4))
        if not killed(site, dice, lasts):
            continue
        cut += 1
        if cut % STRETCH == 0:
            lasts = check(site, dice)
    print(f"{cut} cut of {tries} begun, which last {lasts:.0f} s")
    for machine in machines:
        site.ledger(machine).release()
    until(lambda: {row["state"] for row in site.rows()} == {"succeeded"}, "all jobs end")
    site.run("destroy", "-y")
    assert site.left(*machines) == before
    site.audit()


def killed(site: LabSite, dice: random.Random, lasts: float) -> bool:
    """Apply, and kill that within `lasts` seconds, alone or with all that it started; returns whether it was at it."""
    calls = site.calls
    process = site.shop.start("apply", "-d", "-y")
    # Most while Pulumi is at work: before, there is little to cut.
    if dice.random() < 0.8:
        until(lambda: site.calls > calls or process.poll() is not None, "Pulumi begins")
    time.sleep(dice.uniform(0, lasts))
    was = process.poll() is None
    alone = dice.random() < 0.5
    site.shop.kill([process.pid] if alone else [process.pid, *site.leftovers])
    process.communicate()
    until(lambda: not site.leftovers, "what it started goes with it", 15)
    return was


def check(site: LabSite, dice: random.Random) -> float:
    """Apply without a kill, and have it all as it should be; returns how many seconds Pulumi was at it."""
    names = dice.sample(NAMES, dice.randrange(2, 4))
    site.providers(*names, max_slots=2)
    calls, process = site.calls, site.shop.start("apply", "-d", "-y")
    until(lambda: site.calls > calls or process.poll() is not None, "Pulumi begins")
    began = time.monotonic()
    said = process.communicate(timeout=PATIENCE)
    lasts = time.monotonic() - began
    assert process.returncode == 0 and "FAILED" not in said[0] and "Traceback" not in said[1], said
    assert "No changes" in (planned := site.run("plan")), (said, planned)
    site.audit()
    until(lambda: alive(site) == names, "each host has one agent that takes claims")
    return min(max(lasts, LEAST), MOST)


def alive(site: LabSite) -> list[str]:
    """Return the hosts of agents that take claims; those that they replaced may be at jobs still."""
    rows = site.shop.json("list", "instances")
    return [row["machine"] for row in rows if row["state"] == "alive" and row["about"] != "joined by itself"]
