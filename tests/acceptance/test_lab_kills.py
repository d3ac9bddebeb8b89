"""kill -9 of `monkey apply`, of Pulumi and of its plugins at random moments: the next apply makes everything whole."""

from __future__ import annotations

import os
import random
import time

import pytest

from tests.acceptance.lab_site import LabSite
from tests.acceptance.shop import until

pytestmark = pytest.mark.slow
LONG = bool(os.environ.get("MONKEY_LONG"))
KILLS = 20 if LONG else 2
#: Kills between two looks at whether everything converges.
STRETCH = 4 if LONG else 2
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
    dice, cut, tries = random.Random(seed), 0, 0
    # How many end before they are killed depends on the machine; those are not counted.
    while cut < KILLS:
        tries += 1
        assert tries <= 5 * KILLS, "they end before they are killed: nothing was shown"
        site.providers(*dice.sample(NAMES, dice.randrange(2, 4)), max_slots=dice.randrange(1, 4))
        if not killed(site, dice):
            continue
        cut += 1
        if cut % STRETCH == 0:
            check(site, dice)
    print(f"{cut} cut of {tries} begun")
    for machine in machines:
        site.ledger(machine).release()
    until(lambda: {row["state"] for row in site.rows()} == {"succeeded"}, "all jobs end")
    site.run("destroy", "-y")
    assert site.left(*machines) == before
    site.audit()


def killed(site: LabSite, dice: random.Random) -> bool:
    """Apply, and kill that at some moment: alone, or with all that it started; returns whether it was still at it."""
    calls = site.calls
    process = site.shop.start("apply", "-d", "-y")
    # Most while Pulumi is at work: before, there is nothing to cut.
    until(lambda: site.calls > calls or process.poll() is not None, "Pulumi begins")
    time.sleep(dice.uniform(0, 8))
    was = process.poll() is None
    alone = dice.random() < 0.5
    site.shop.kill([process.pid] if alone else [process.pid, *site.leftovers])
    process.communicate()
    until(lambda: not site.leftovers, "what it started goes with it", 15)
    return was


def check(site: LabSite, dice: random.Random) -> None:
    """Apply without a kill, and have it all as it should be."""
    names = dice.sample(NAMES, dice.randrange(2, 4))
    site.providers(*names, max_slots=2)
    site.apply("-y")
    assert "No changes" in site.run("plan")
    site.audit()
    rows = [row for row in site.shop.json("list", "instances") if row["about"] != "joined by itself"]
    assert [(row["machine"], row["state"]) for row in rows] == [(name, "alive") for name in names]
