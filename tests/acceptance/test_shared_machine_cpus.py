"""Two projects share the licence of a machine, and two fleets the CPUs of a host, by a lock that each job takes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from monkey.fleet.machine_capacity import measure_capacity
from tests.acceptance.lab_site import LabSite
from tests.acceptance.ledger import whole_lines
from tests.acceptance.shop import Shop, until
from tests.acceptance.site import LEDGER

JOB = """\
import fcntl, os, sys, time
lock = os.open(sys.argv[1] + "/lock", os.O_RDWR | os.O_CREAT)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    said = sys.argv[2]
except BlockingIOError:
    said = "overlap"
with open(sys.argv[1] + "/order", "a") as order:
    order.write(said + "\\n")
time.sleep(0.3)
while os.path.exists(sys.argv[1] + "/hold"):
    time.sleep(0.02)
"""
#: Where the host must have something mounted.
PLACE = "/mnt/shared"


@pytest.mark.slow
def test_two_projects_take_turns_with_a_counted_resource(make_shop: Callable[..., Shop]) -> None:
    shop, other = make_shop(), make_shop("other")
    other.env |= {"XDG_STATE_HOME": shop.state, "HOME": shop.env["HOME"]}
    other.state = shop.state
    for site, name in ((shop, "shop"), (other, "other")):
        text = f"project: {name}\nproviders: {{local: {{resources: {{licence: 1}}}}}}\n"
        (site.root / "monkey.yaml").write_text(text)
    directory = shop.ledger.directory
    for site, name in ((shop, "ana"), (other, "ben")):
        (site.root / "work.py").write_text(JOB)
        command = f"command: [python3, work.py, '{directory}', {name}, '{{i}}']\n"
        site.spec(f"{command}outputs: []\nresources: {{cpus: 0.1, licence: 1}}\n", jobs=14)
    shop.ledger.hold()
    shop.run("apply", "--detach")
    until(lambda: whole_lines(directory / "order"), "ana's first job has the licence")
    other.run("apply", "--detach")
    until(lambda: _count_waiting(Path(shop.state)), "ben's agent waits")
    why = "jobs wait for 0.1 CPUs, 1 licence: jobs of your other projects or fleets hold this machine"
    until(lambda: why in other.run("status").stdout, "status says why ben's jobs wait")
    shop.ledger.release()
    shop.run("apply")
    other.run("apply")
    order = whole_lines(directory / "order")
    assert sorted(order) == ["ana"] * 14 + ["ben"] * 14, order
    first = order.index("ben")
    assert "ana" in order[first:], "ben has waited until ana had no job left"
    turns = order[first : len(order) - order[::-1].index("ana")]
    assert sum(one != next_one for one, next_one in pairwise(turns)) >= len(turns) - 3, order


@pytest.mark.slow
def test_two_fleets_on_a_host_wait_for_its_mount_and_take_turns(lab_site: LabSite) -> None:
    site = lab_site
    (host,) = site.hosts("h1")
    lab = {"type": "ssh", "hosts": ["h1"], "mounts": {PLACE: None}}
    site.providers(more={"ana": lab, "ben": lab})
    (site.shop.root / "work.py").write_text(JOB)
    for name in ("ana", "ben"):
        command = f"command: [python3, work.py, '{LEDGER}', {name}, '{{i}}']\nprovider: {name}\noutputs: []\n"
        site.sweep(f"{command}resources: {{cpus: {measure_capacity().cpus:g}}}\n", jobs=6, name=name)
    ledger = site.ledger(host)
    ledger.hold()
    site.apply("specs/ana.yaml")
    until(lambda: f"{PLACE} is not mounted" in site.run("status"), "ana's agent says what is not mounted")
    assert not (ledger.directory / "order").exists(), "a job began on an empty directory"
    host.within("mkdir", "-p", PLACE)
    host.within("mount", "-t", "tmpfs", "none", PLACE)
    until(lambda: whole_lines(ledger.directory / "order"), "ana's first job has all CPUs")
    site.apply("specs/ben.yaml")
    waiting = host.home / ".monkey/hosts"
    until(lambda: _count_waiting(waiting, "*/*/*"), "ben's agent waits")
    ledger.release()
    until(lambda: len(whole_lines(ledger.directory / "order")) == 12, "all jobs begin")
    order = whole_lines(ledger.directory / "order")
    assert sorted(order) == ["ana"] * 6 + ["ben"] * 6, order
    host.within("umount", PLACE)
    site.run("destroy", "-y")


def _count_waiting(state: Path, agents: str = "monkey/*/local/*") -> int:
    """Return how many agents say that they wait."""
    files = state.glob(f"{agents}/slots.json")
    return sum('"since"' in path.read_text() for path in files)
