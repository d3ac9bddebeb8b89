"""Agents on hosts over SSH: real machines, a store on another of them, and what the jobs noted there."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from monkey.errors import HostAway
from monkey.spec.project.ssh_host import parse_ssh_host
from monkey_stacks.ssh.host_state import list_differences
from monkey_stacks.ssh.operations import build_host_bundle, converge_host, list_inventory, observe_host, remove_fleet
from tests.acceptance.shop import until
from tests.acceptance.site import Site, left_on
from tests.hosts import Machine

pytestmark = pytest.mark.slow

LONG = bool(os.environ.get("MONKEY_LONG"))


def test_a_sweep_runs_on_hosts_and_nothing_of_it_stays(site: Site) -> None:
    names = ("h1", "h2", "h3")
    machines = site.hosts(*names)
    (store,) = site.lab("store")
    before = {machine.name: left_on(machine) for machine in [*machines, store]}
    for machine in machines:
        assert "ModuleNotFoundError" in machine.within("sh", "-c", "python3 -c 'import monkey' 2>&1", code=None)
    ledgers = [site.ledger(machine) for machine in machines]
    for ledger in ledgers:
        ledger.hold()
    site.spec(jobs=12)
    seen = site.converge(*names, max_slots=2)
    assert [one.keeping for one in seen] == ["systemd", "cron", "cron"]
    assert all(one.living and one.living.after_boot for one in seen)
    wanted = site.wanted(max_slots=2)
    assert not any(list_differences(one, wanted, build_host_bundle(one, wanted).sha256) for one in seen)
    until(lambda: all(ledger.executions == 2 for ledger in ledgers), "every host works")
    for ledger in ledgers:
        ledger.release()
    until(lambda: [row["state"] for row in site.rows()] == ["succeeded"] * 12, "all jobs end")
    assert sum(ledger.executions for ledger in ledgers) == 12
    # Once more: nothing changes.
    again = site.converge(*names, max_slots=2)
    assert [one.agents for one in again] == [one.agents for one in seen]
    site.remove(*names)
    for machine in [*machines, store]:
        assert left_on(machine) == before[machine.name]


def test_an_update_interrupts_no_job(site: Site) -> None:
    """The old agent's job goes on under it, and the machine is not filled twice."""
    (host,) = site.hosts("h2")
    ledger = site.ledger(host)
    ledger.hold()
    site.spec(jobs=4)
    site.converge("h2", max_slots=1)
    until(lambda: ledger.executions == 1, "a job begins")
    (first,) = ledger.begins
    (seen,) = site.converge("h2", max_slots=2)
    old, new = seen.agents
    assert old.alive and old.draining and seen.living == new
    until(lambda: ledger.executions == 2, "the new agent begins a job beside the old one's")
    time.sleep(2)  # there is no room for a third; one that came would come now
    assert ledger.executions == 2
    ledger.release()
    until(lambda: [row["state"] for row in site.rows()] == ["succeeded"] * 4, "all jobs end")
    assert ledger.executions == 4 and ledger.begins[first] == 1
    assert {line.attempt for line in ledger.lines} == {1}
    until(lambda: not site.observe("h2", max_slots=2).agents[0].alive, "the old agent leaves")
    (seen,) = site.converge("h2", max_slots=2)
    assert [agent.number for agent in seen.agents] == [new.number]
    assert seen.agents[0].pid == new.pid


def test_agents_outlive_logins_and_reboots(site: Site) -> None:
    names = ("h1", "h2", "h3")
    machines = site.hosts(*names)
    site.workdir = "~/a place%h $HOME's"  # that systemd, cron and shells would all like to read
    ledgers = [site.ledger(machine) for machine in machines]
    for ledger in ledgers:
        ledger.hold()
    site.spec(jobs=3)
    pids = {
        name: seen.living.pid
        for name, seen in zip(names, site.converge(*names, max_slots=1), strict=True)
        if seen.living
    }
    until(lambda: all(ledger.executions for ledger in ledgers), "every host works")
    until(lambda: not any("sshd" in machine.processes() for machine in machines), "all have logged out")
    time.sleep(12)  # logind ends what goes with a login within ten seconds
    for name in names:
        living = site.observe(name, max_slots=1).living
        assert living is not None and living.pid == pids[name]
    for machine in machines:
        machine.reboot()
    until(lambda: all(_agents(machine) for machine in machines), "agents come back by themselves")
    for ledger in ledgers:
        ledger.release()
    until(lambda: [row["state"] for row in site.rows()] == ["succeeded"] * 3, "what the reboot ended is run again")
    assert all(site.observe(name, max_slots=1).living for name in names)


def _agents(machine: Machine) -> list[str]:
    return [line for line in machine.processes().splitlines() if "/bundles/" in line and "supervisor.py" not in line]


def test_an_agent_that_dies_is_begun_again_or_missed(site: Site) -> None:
    one, two = site.hosts("h1", "h2")
    before = dict(zip(("h1", "h2"), site.converge("h1", "h2"), strict=True))
    for machine in (one, two):
        machine.within("pkill", "-KILL", "-f", "/bundles/")
    assert site.observe("h2").living is None
    wanted, seen = site.wanted(), site.observe("h2")
    assert list_differences(seen, wanted, build_host_bundle(seen, wanted).sha256) == ("no agent lives",)
    (seen,) = site.converge("h2")
    assert [agent.number for agent in seen.agents] == [1], "it goes on where the dead one was"
    until(lambda: site.observe("h1").living, "systemd begins it again")
    assert site.observe("h1").agents[0].pid != before["h1"].agents[0].pid


def test_what_keeps_agents_alive_is_put_back(site: Site) -> None:
    one, two = site.hosts("h1", "h2")
    before = [seen.agents for seen in site.converge("h1", "h2")]
    one.within("sh", "-c", "rm /home/worker/.config/systemd/user/*.service")
    two.within("crontab", "-u", "worker", "-r")
    for name in ("h1", "h2"):
        seen, wanted = site.observe(name), site.wanted()
        assert list_differences(seen, wanted, build_host_bundle(seen, wanted).sha256) == (
            "not begun again after a boot",
        )
    assert [seen.agents for seen in site.converge("h1", "h2")] == before


def test_fleets_on_one_host_leave_each_other_alone(site: Site) -> None:
    (host,) = site.hosts("h3")
    before = left_on(host)
    host.within("su", "worker", "-c", "(crontab -l; echo '@daily true # of the user') 2>/dev/null | crontab -")
    site.converge("h3")
    other = site.wanted(project="other")
    converge_host(parse_ssh_host("h3"), other)
    names = {site.wanted().name, other.name}
    found = list_inventory(parse_ssh_host("h3"))
    assert found.fleets == set(found.directories) == set(found.crontab) == names and not found.units
    assert set(found.living) == names
    site.remove("h3")
    assert list_inventory(parse_ssh_host("h3")).fleets == {other.name}
    assert observe_host(parse_ssh_host("h3"), other).living and len(_agents(host)) == 1
    remove_fleet(parse_ssh_host("h3"), other)
    assert not list_inventory(parse_ssh_host("h3")).fleets and not list_inventory(parse_ssh_host("h3")).processes
    assert host.within("crontab", "-u", "worker", "-l") == "@daily true # of the user\n"
    host.within("crontab", "-u", "worker", "-r")
    assert left_on(host) == before


APPLY = """
import sys
from monkey.spec.project.ssh_host import parse_ssh_host
from monkey.signing.entry_signers import load_user_signers
from monkey_stacks.ssh.operations import converge_host
from monkey_stacks.ssh.host_state import HostPlan
signers = load_user_signers().format_for_machine()
plan = HostPlan(sys.argv[2], "shop", "lab", idle_timeout=3000, max_slots=int(sys.argv[3]), signers=signers)
converge_host(parse_ssh_host(sys.argv[1]), plan)
"""


def test_an_apply_that_is_killed_anywhere_is_mended_by_the_next(site: Site) -> None:
    (host,) = site.hosts("h3")
    (store,) = site.lab("store")
    before = left_on(host), left_on(store)
    chance = random.Random(7)
    for slots in range(1, 21 if LONG else 5):
        command = [sys.executable, "-c", APPLY, "h3", site.url, str(slots)]
        killed = subprocess.Popen(command, start_new_session=True)
        time.sleep(chance.uniform(0.2, 4))  # any moment will do
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
    (seen,) = site.converge("h3", max_slots=1)
    wanted = site.wanted(max_slots=1)
    assert not list_differences(seen, wanted, build_host_bundle(seen, wanted).sha256)
    until(lambda: len(_agents(host)) == 1, "all others leave")
    assert len((store.home / ".ssh/authorized_keys").read_text().splitlines()) == 2
    site.remove("h3")
    assert (left_on(host), left_on(store)) == before


@pytest.mark.skipif(not LONG, reason="waits until silence counts as an answer")
def test_a_cut_in_the_middle_is_noticed(site: Site) -> None:
    (host,) = site.hosts("h3")
    with ThreadPoolExecutor(1) as pool:
        converging = pool.submit(site.converge, "h3")
        until(lambda: list((host.home / ".monkey").glob("bundles/*")), "the bundle is on its way")
        host.cut()
        with pytest.raises(HostAway, match=r"h3 (does not|did not) answer"):
            converging.result(60)
    host.mend()
    (seen,) = site.converge("h3")
    assert seen.living and [agent.number for agent in seen.agents] == [1]


def test_hosts_share_a_home(site: Site) -> None:
    one, two = site.hosts("pair1", "pair2")
    before = left_on(one)["files"]
    ledger = site.ledger(one)
    ledger.hold()
    site.spec(jobs=2)
    first, second = site.converge("pair1", "pair2", max_slots=1)
    assert first.host != second.host and len(list((one.home / ".monkey/bundles").iterdir())) == 1
    until(lambda: ledger.executions == 2, "both hosts work")
    assert _agents(one) != _agents(two) and len(_agents(one)) == len(_agents(two)) == 1
    for machine in (one, two):
        machine.reboot()
    until(lambda: len(_agents(one)) == len(_agents(two)) == 1, "each begins its own agent again, and no other's")
    ledger.release()
    until(lambda: [row["state"] for row in site.rows()] == ["succeeded"] * 2, "all jobs end")
    site.remove("pair1")
    assert not _agents(one) and len(_agents(two)) == 1
    assert site.observe("pair2", max_slots=1).living
    site.remove("pair2")
    assert left_on(two)["files"] == before


def test_secrets_lie_in_files_of_the_users_alone(site: Site) -> None:
    (host,) = site.hosts("h1")
    secrets = {"TOKEN": 'a "quoted phrase"\n\\value$'}
    credentials = {"AWS_SECRET_ACCESS_KEY": "not for others"}
    site.shop.env["TOKEN"] = "somebody else's"
    (seen,) = site.converge("h1", secrets=secrets, credentials=credentials)
    wanted = site.wanted(secrets=secrets, credentials=credentials)
    assert not list_differences(seen, wanted, build_host_bundle(seen, wanted).sha256)
    for other, what in (({"TOKEN": "b"}, "secrets"), ({}, "secrets")):
        assert f"other {what}" in list_differences(seen, dataclasses.replace(wanted, secrets=other), wanted.store)
    holding = host.within(
        "grep", "-rl", "-e", "not for others", "-e", "quoted phrase", "/home", "/tmp", "/run/user"
    ).split()
    assert sorted(path.rpartition("/")[2] for path in holding) == ["credentials.json", "secrets"]
    assert all(host.within("stat", "-c", "%a %U", path) == "600 worker\n" for path in holding)
    assert "not for others" not in repr(seen) + repr(wanted) + host.within("ps", "-ewwo", "args")
    site.spec("command: [sh, -c, 'printf %s \"$TOKEN\" | md5sum', sh, '{i}']\nsecrets: [TOKEN]\noutputs: []\n", jobs=1)
    until(lambda: [row["state"] for row in site.rows()] == ["succeeded"], "the job ends")
    said = site.shop.run("logs", "sweep").stdout
    assert hashlib.md5(secrets["TOKEN"].encode(), usedforsecurity=False).hexdigest() in said


def test_an_agent_leaves_when_there_is_nothing_to_do(site: Site) -> None:
    (host,) = site.hosts("h3")
    (seen,) = site.converge("h3", idle_timeout=3)  # it is to be seen before it leaves
    assert seen.living
    until(lambda: site.observe("h3").agents[0].left, "it leaves")
    seen, wanted = site.observe("h3"), site.wanted(idle_timeout=3)
    assert list_differences(seen, wanted, build_host_bundle(seen, wanted).sha256) == (
        "the agent left, for there was nothing to do",
    )
    host.reboot()
    assert not _agents(host), "a reboot begins nothing that left in peace"
    (seen,) = site.converge("h3")
    assert [(agent.number, agent.alive) for agent in seen.agents] == [(1, True)]
