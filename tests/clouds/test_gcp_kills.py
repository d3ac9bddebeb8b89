"""kill -9 of whoever applies, of Pulumi and of its plugin, before a thing is made and after it: nothing is left."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.shop import until
from tests.clouds.gcp.desk import Google
from tests.clouds.gcp.renter import Renter
from tests.stacks.desk import leftovers

pytestmark = pytest.mark.slow

#: What the plugin makes, and takes away.
KINDS = (
    *("network", "subnetwork", "firewall", "account", "bucketIAMMember", "iAMMember"),
    *("instanceTemplate", "regionInstanceGroupManager"),
)
#: Kills while it is made; one more comes while it is taken away.
KILLS = 2
#: What is asked of the API while it is made.
ASKED = ("listManagedInstances", "resize")
LONG = bool(os.environ.get("MONKEY_LONG"))
#: Seconds for a process to come to where it is killed, on a machine that does much else.
PATIENCE = 300


class Killer:
    """Kills who rents, at what the plugin does."""

    def __init__(self, renter: Renter, google: Google) -> None:
        self.renter, self.google = renter, google
        #: What was cut off.
        self.cut: list[str] = []

    def kill(self, call: str, what: str, *, after: bool) -> bool:
        """Kill at a call; False where it ended before it came there, since that was done already.

        `call`: "create" or "delete" of the plugin, and of what kind; or "POST", and the end of the path.
        """
        shelf, rest = self.google.shelf.base, self.google.rest
        if call == "POST":
            rest.held, rest.after = f"POST .*/{what}", after
        else:
            fault = {"match": f"{call} gcp:[a-z]*/{what}:", "after": after}
            (shelf / "faults.json").write_text(json.dumps([fault]))
        reached = lambda: rest.reached.is_set() or (shelf / "reached").exists()  # noqa: E731
        process = self.renter.start(None if call == "delete" else 8)
        until(lambda: reached() or process.poll() is not None, f"{call} {what} comes", PATIENCE)
        ended = process.poll() is not None
        self._end(process)
        rest.held = ""
        rest.reached.clear()
        for name in ("faults.json", "reached"):
            (shelf / name).unlink(missing_ok=True)
        self.cut += [] if ended else [f"{'after' if after else 'before'} {call} {what}"]
        return not ended

    def _end(self, process: subprocess.Popen[str]) -> None:
        for pid in [process.pid, *(int(line.split()[0]) for line in leftovers(self.google.base))]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()
        until(lambda: not leftovers(self.google.base), "all of it ends", PATIENCE)


def whole(renter: Renter, google: Google) -> None:
    """Hold what there is at Google against the state, one to one."""
    known = renter.known().values()
    assert not [each.name for each in known if each.interrupted]
    there = {id_ for id_, props in google.shelf.things.items() if props["type"] != "instance"}
    assert there == {each.id for each in known}


def test_nothing_is_left_behind_by_who_was_killed_at_random_calls(pulumi: None, gcp: Google, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10_000)
    dice, renter = random.Random(seed), Renter(gcp.url)
    killer = Killer(renter, gcp)
    print(f"seed {seed}")
    while len(killer.cut) < KILLS:
        call, what = dice.choice([*(("create", kind) for kind in KINDS), *(("POST", path) for path in ASKED)])
        killer.kill(call, what, after=dice.random() < 0.6)
    print(killer.cut)
    renter.converge()
    whole(renter, gcp)
    assert len(gcp.rest.machines()) == 4
    assert killer.kill("delete", dice.choice(KINDS), after=dice.random() < 0.6)
    print(killer.cut[-1])
    renter.destroy()
    assert gcp.shelf.things == {}


@pytest.mark.skipif(not LONG, reason="MONKEY_LONG=1: every call of a fleet's life, half an hour")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_nothing_is_left_behind_at_any_call(pulumi: None, gcp: Google, after: bool) -> None:
    renter = Renter(gcp.url)
    killer = Killer(renter, gcp)
    for call, what in [*(("create", kind) for kind in KINDS), *(("POST", path) for path in ASKED)]:
        assert killer.kill(call, what, after=after), f"{call} {what} did not come"
        renter.converge()
        whole(renter, gcp)
        assert len(gcp.rest.machines()) == 4
        assert killer.kill("delete", KINDS[len(killer.cut) % len(KINDS)], after=after)
        renter.destroy()
        assert gcp.shelf.things == {}
        print(*killer.cut[-2:], sep=", ", flush=True)
