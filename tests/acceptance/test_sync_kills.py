"""kill -9 of a sync at random moments of its rounds: the next one converges, and each job runs once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Callable

import pytest

from monkey.removal import remove_tree
from tests.acceptance.follower import Follower
from tests.acceptance.shop import Shop, until

#: How often it is killed, and seconds within which it is: a round with a new commit takes about one.
KILLS, ROUND = 50, 1.6


@pytest.mark.slow
def test_fifty_kills_of_a_sync_lose_nothing_and_run_nothing_twice(shop: Shop, require: Callable[[str], str]) -> None:
    require("git")
    follower, seed = Follower(shop), random.randrange(10**6)
    dice, killed, state = random.Random(seed), 0, shop.root.parent / "sync"
    print(f"seed {seed}")
    for kill in range(KILLS):
        # A file that only this commit has: one that a cut checkout left would make the next jobs' code another.
        for path in shop.root.glob("extra*.py"):
            path.unlink()
        (shop.root / f"extra{kill}.py").write_text("x = 1\n" * dice.randrange(1, 1000))
        if kill % 10 == 5:
            remove_tree(state)  # the next kills meet a clone that is being made
        head = follower.push(jobs=kill // 2 + 1, text="code: {include: [job.py]}\n")
        sync = follower.start("--directory", str(state))
        try:
            sync.communicate(timeout=dice.uniform(0.1, ROUND))
        except subprocess.TimeoutExpired:
            os.kill(sync.pid, signal.SIGKILL)
            sync.communicate()
            killed += 1
    assert killed == KILLS, "one ended by itself"
    follower.once("--directory", str(state))
    follower.wait_for_jobs(KILLS // 2)
    tree = state / "tree" / "sweeps"
    assert follower.remote.git("rev-parse", "HEAD", at=tree) == head
    assert follower.remote.git("status", "--porcelain", "--ignored", at=tree) in ("", "!! .monkey/")
    assert not list((tree / ".git").rglob("*.lock"))
    assert follower.git_line().startswith(f"git: main {head[:10]} applied ")
    until(lambda: shop.states() == {"succeeded": KILLS // 2}, "their ends are in the store")
