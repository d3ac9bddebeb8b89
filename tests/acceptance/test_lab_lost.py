"""Three hosts at one sweep, each lost in another way while nobody looks: what the ledgers on them tell afterwards."""

from __future__ import annotations

import functools
import itertools
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from monkey.protocol.clock import CLOCK
from monkey.spec.job.lease_length import LEASE
from tests import cable
from tests.acceptance.lab_site import LabSite, lines
from tests.acceptance.ledger import NOTED, Ledger
from tests.acceptance.shop import until
from tests.acceptance.site import LEDGER
from tests.hosts import Lab, Machine

ROOT = Path(__file__).parents[2]
NAMES = ("h1", "h2", "h3")
SLOTS = 2
#: Seconds within which others have begun anew what a lost host was at: a lease, a look, and what comes before a job.
TAKEOVER = 110.0
#: Seconds that an agent must outlive the login that began it.
LOGOUT = 60.0
#: Seconds that the sweep may stand still or go on, and between looks at ledgers.
PATIENCE, STEP = 300.0, 0.5
#: What tells an agent's command line.
AGENT = "/bundles/[^ ]* [^ ]*/[0-9]+$"


@dataclass(frozen=True)
class Execution:
    """One execution of a job, in seconds since the hosts' kernel, which is one, was booted."""

    job: str
    host: str
    begin: float
    #: When it was last seen to run, five times a second.
    last: float
    ended: bool


def executions(site: LabSite, machines: list[Machine]) -> list[Execution]:
    """Return all executions in the order of their beginnings, from the hosts' ledgers."""
    found = []
    for machine in machines:
        told = sorted(site.ledger(machine).lines, key=lambda line: (line.job, line.attempt, line.pid, line.at))
        for (job, _, _), of_it in itertools.groupby(told, key=lambda line: (line.job, line.attempt, line.pid)):
            notes = list(of_it)
            ended = any(note.what == "end" for note in notes)
            found.append(Execution(job, machine.name, notes[0].at, notes[-1].at, ended))
    return sorted(found, key=lambda execution: execution.begin)


class Shelf(SimpleHTTPRequestHandler):
    """A package index of files; what was fetched may be kept, as PyPI's may."""

    def end_headers(self) -> None:
        """Say so."""
        self.send_header("Cache-Control", "max-age=3600")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def packages(lab: Lab, tmp_path: Path) -> Iterator[None]:
    """Let the hosts' pip have what the digits sweep requires: they have no way to PyPI."""
    machines = lab(*NAMES)
    index = tmp_path / "index"
    (index / "numpy").mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "fetch")], check=True)
    fits = ["--only-binary", ":all:", "--no-deps", "--python-version", "3.11"]
    fits += ["--platform", f"manylinux_2_28_{platform.machine()}", "--platform", f"manylinux_2_27_{platform.machine()}"]
    fetch = [str(tmp_path / "fetch/bin/pip"), "download", "-q", *fits, "-d", str(index / "numpy")]
    subprocess.run([*fetch, "-r", str(ROOT / "specs/digits/requirements.txt")], check=True)
    address = f"{lab.network}.1"
    with ThreadingHTTPServer((address, 0), functools.partial(Shelf, directory=str(index))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for machine in machines:
            said = f"[global]\nindex-url = http://{address}:{server.server_port}/\ntrusted-host = {address}\n"
            (machine.root / "etc/pip.conf").write_text(said)
        yield
        for machine in machines:
            (machine.root / "etc/pip.conf").unlink()
        server.shutdown()


def digits(site: LabSite, seeds: int) -> int:
    """Write the project's own sweep for the fleet, with ledgers where its jobs run; returns how many these are."""
    specs = site.shop.root / "specs"
    shutil.copytree(ROOT / "specs/digits", specs / "digits", dirs_exist_ok=True)
    (specs / "digits/noted.py").write_text(NOTED)
    text = (ROOT / "specs/digits.yaml").read_text()
    for old, new in (
        ("python train.py", f"python noted.py {LEDGER} model.npz train.py"),
        ("seed: {range: [0, 3]}", f"seed: {{range: [0, {seeds}]}}"),
        ("include: [train.py]", "include: [train.py, noted.py]"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (specs / "digits.yaml").write_text(f"{text}provider: lab\n")
    return 4 * 3 * seeds


def agents(machine: Machine) -> list[int]:
    """Return the agents' processes on a host."""
    return [int(pid) for pid in machine.within("pgrep", "-u", "worker", "-f", AGENT, code=None).split()]


def all_work(site: LabSite, machines: list[Machine]) -> None:
    """Wait until all slots of these hosts are at jobs that are held."""
    now = time.clock_gettime(CLOCK)

    def busy(machine: Machine) -> bool:
        found = executions(site, [machine])
        return len([each for each in found if not each.ended and each.last > now]) == SLOTS

    until(lambda: all(map(busy, machines)), "every host works", PATIENCE, STEP)


def outlive_the_login(machines: list[Machine]) -> None:
    """Have the agents live on for a minute after the last one who logged in has left."""
    until(lambda: not any("sshd" in machine.processes() for machine in machines), "all have logged out")
    began, before = time.monotonic(), [agents(machine) for machine in machines]
    assert [len(pids) for pids in before] == [1] * len(machines)
    while time.monotonic() < began + LOGOUT:
        assert [agents(machine) for machine in machines] == before
        time.sleep(2)


def lose(cut: Machine, killed: Machine, rebooted: Machine) -> dict[str, float]:
    """Lose three hosts, each in its way; returns when, on the kernel's clock."""
    at = {}
    at[cut.name] = time.clock_gettime(CLOCK)
    cut.cut()
    at[killed.name] = time.clock_gettime(CLOCK)
    killed.within("pkill", "-KILL", "-f", AGENT)
    at[rebooted.name] = time.clock_gettime(CLOCK)
    rebooted.reboot()
    return at


def judge(found: list[Execution], lost: dict[str, float], jobs: int) -> None:
    """Have every job executed to its end, no two executions of one overlap, and takeovers come in time."""
    by_job: dict[str, list[Execution]] = {}
    for execution in found:
        by_job.setdefault(execution.job, []).append(execution)
    assert len(by_job) == jobs and all(of_it[-1].ended for of_it in by_job.values())
    pairs = [pair for of_it in by_job.values() for pair in itertools.pairwise(of_it)]
    for one, two in pairs:
        assert one.last < two.begin, (one, two)
    taken = [(one, two) for one, two in pairs if one.begin < lost[one.host]]
    assert {one.host for one, _ in taken} == set(NAMES), "each that was lost was at something"
    for one, two in taken:
        gone, again = one.last - lost[one.host], two.begin - lost[one.host]
        print(f"{one.host} → {two.host}: ran {gone:5.1f} s after the loss, begun anew {again:5.1f} s after it")
        assert gone < LEASE and again < TAKEOVER, (one, two)


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("MONKEY_LONG"), reason="waits for leases")
@pytest.mark.usefixtures("packages")
def test_a_sweep_outlives_the_loss_of_its_hosts_and_of_who_began_it(lab_site: LabSite) -> None:
    site = lab_site
    machines = site.hosts(*NAMES)
    before = site.left(*machines)
    ledgers = [site.ledger(machine) for machine in machines]
    for ledger in ledgers:
        ledger.hold()
    site.providers(*NAMES, max_slots=SLOTS, idle_timeout=3000)
    jobs = digits(site, 5)
    site.apply()
    all_work(site, machines)
    assert not site.shop.processes()
    with cable.unplugged(site.lab.bridge):
        outlive_the_login(machines)
        for ledger in ledgers:
            ledger.release()
        until(lambda: sum(len(ledger.digests) for ledger in ledgers) >= jobs // 3, "a third is done", PATIENCE, STEP)
        for ledger in ledgers:
            ledger.hold()
        all_work(site, machines)
        lost = lose(*machines)
        for ledger in ledgers[1:]:
            ledger.release()
        until(
            lambda: len({job for ledger in ledgers for job in ledger.digests}) == jobs, "all jobs end", PATIENCE, STEP
        )
    check_results(site, ledgers, jobs)
    jobs = mend(site, machines)
    for ledger in ledgers:
        ledger.release()
    check_results(site, ledgers, jobs)
    judge(executions(site, machines), lost, jobs)
    site.audit()
    site.run("destroy", "-y")
    assert site.left(*machines) == before and not site.shop.processes()
    site.audit()


def mend(site: LabSite, machines: list[Machine]) -> int:
    """Have a plan for more jobs tell what was lost, and an apply put it right, for good; returns how many there are."""
    cut, killed, _ = machines
    jobs = digits(site, 6)
    said = site.run("plan")
    assert lines(said, "lab/h2") == ["~ lab/h2: no agent lives"]
    assert lines(said, "lab/h1") == ["! lab/h1"] and lines(said, "h1 does not answer") and not lines(said, "lab/h3")
    cut.mend()
    until(lambda: not cut.within("pgrep", "-f", "noted.py", code=None), "what was frozen there is given up")
    for machine in machines[1:]:
        site.ledger(machine).hold()  # the first one's is held still
    assert lines(site.apply(), "lab: h2: updated") and agents(killed)
    all_work(site, machines)
    assert f"No changes: {jobs} kept" in site.run("plan")
    for machine in (cut, killed):
        machine.reboot()
    all_work(site, machines)
    assert f"No changes: {jobs} kept" in site.run("plan")
    return jobs


def check_results(site: LabSite, ledgers: list[Ledger], jobs: int) -> None:
    """Have all jobs recorded, with the model that an execution of it ended with, and networks that were trained."""
    until(lambda: site.shop.states("digits") == {"succeeded": jobs}, "every job is recorded")
    for row in site.shop.json("list", "jobs", "digits"):
        assert any(row["outputs"]["model.npz"] in ledger.digests[row["job"]] for ledger in ledgers), row
    rows = site.shop.json("results", "digits")
    assert len(rows) == jobs and max(row["metrics"]["test_accuracy"] for row in rows) > 0.95
