"""Machines that are not as they were left, and settings that change: what a plan says of it, and what apply mends."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.acceptance.lab_site import LabSite, holding, lines
from tests.acceptance.shop import until
from tests.acceptance.site import LEDGER
from tests.signing import make_public

pytestmark = pytest.mark.slow
NAMES = ("h1", "h2", "h3")


def test_drift_is_shown_and_mended_and_who_is_away_hinders_nobody(lab_site: LabSite) -> None:
    site = lab_site
    _, dead, away = machines = site.hosts(*NAMES)
    ledgers = [site.ledger(machine) for machine in machines]
    for ledger in ledgers:
        ledger.hold()
    site.providers(*NAMES, max_slots=1)
    site.sweep(jobs=9)
    site.apply()
    until(lambda: all(ledger.executions == 1 for ledger in ledgers), "every host works")
    for machine in (dead, away):
        machine.within("pkill", "-KILL", "-f", "/bundles/")
    away.cut()
    said = site.run("plan")
    assert lines(said, "lab/h2") == ["~ lab/h2: no agent lives"]
    assert lines(said, "lab/h3") == ["! lab/h3"] and lines(said, "h3 does not answer") and not lines(said, "lab/h1")
    assert lines(site.run("audit", code=1), "lab/h2: no agent lives here, though there is work")
    said = site.apply()
    assert lines(said, "lab: h2: updated") and lines(said, "lab: h3: FAILED: h3 does not answer")
    assert len(lines(said, "h3 does not answer")) == 1
    audited = site.run("audit", code=1)
    assert lines(audited, "lab/h3: cannot be looked at: h3 does not answer") and "lab/h2" not in audited
    away.mend()
    assert lines(site.apply(), "lab: h3: updated")
    until(lambda: [ledger.executions for ledger in ledgers] == [1, 2, 2], "all work again")
    site.audit()


def test_a_change_of_settings_interrupts_no_job_and_a_host_that_is_not_named_is_cleaned(lab_site: LabSite) -> None:
    site = lab_site
    stays, goes = site.hosts("h1", "h2")
    before = site.left(goes)["h2"]
    ledgers = [site.ledger(machine) for machine in (stays, goes)]
    for ledger in ledgers:
        ledger.hold()
    site.providers("h1", "h2", max_slots=1)
    site.sweep(jobs=4)
    site.apply()
    until(lambda: all(ledger.executions == 1 for ledger in ledgers), "every host works")

    site.providers("h1", "h2", max_slots=1, workdir="/srv/none")
    said = site.run("plan")
    for name in ("h1", "h2"):
        assert lines(said, f"lab/{name}") == [
            f"! lab/{name}: left as it is, for it cannot be moved; workdir ~/.monkey → /srv/none"
        ]
        assert lines(said, f"{name}: no right to write to /srv/none")
    said = site.apply(code=1)
    assert lines(said, "lab: h2: FAILED: left as it was, for it cannot be moved: no right to write to /srv/none")
    site.providers("h1", "h2", max_slots=2)
    (goes.home / ".monkey").chmod(0o555)
    said = site.run("plan")
    assert lines(said, "lab/h1") == ["~ lab/h1: max_slots 1 → 2"]
    assert lines(said, "lab/h2") == ["! lab/h2: max_slots 1 → 2"]
    assert lines(said, "h2: no right to write to /home/worker/.monkey")
    (goes.home / ".monkey").chmod(0o700)
    site.apply()
    until(lambda: all(ledger.executions == 2 for ledger in ledgers), "every host takes another")
    assert not any(ledger.digests for ledger in ledgers), "nothing has ended"
    assert {line.attempt for ledger in ledgers for line in ledger.lines} == {1}

    site.providers("h1", max_slots=2)
    goes_away = "- lab/h2: everything of it is taken away; 2 jobs running there: stopped and queued again"
    until(lambda: lines(site.run("plan"), "lab/h2") == [goes_away], "heartbeats tell of both jobs", 60)
    assert "applying would stop 2 running jobs on machines that go" in site.apply(code=1)
    assert lines(site.apply("-y"), "lab: h2: everything taken away")
    assert site.left(goes)["h2"] == before
    for ledger in ledgers:
        ledger.release()
    until(lambda: [row["state"] for row in site.rows()] == ["succeeded"] * 4, "all jobs end")
    assert site.ledger(stays).executions == 4 and max(site.ledger(stays).begins.values()) == 1
    site.audit()


def told(name: str) -> str:
    """Return the spec of jobs that say which value of a secret they were given, without telling it."""
    script = f'printf %s "${name}" | md5sum; exec python3 job.py "$@"'
    return f"command: [sh, -c, '{script}', sh, '{LEDGER}', '0.05', '{{i}}']\nsecrets: [{name}]\n"


def test_secrets_are_on_hosts_and_nowhere_else(lab_site: LabSite) -> None:
    site = lab_site
    (host,) = site.hosts("h3")
    ledger = site.ledger(host)
    ledger.hold()
    values = {"TOKEN": "open-sesame-4711", "OTHER": "rosebud-0815"}
    site.providers("h3", max_slots=1)
    for name, sweep in (("OTHER", "first"), ("TOKEN", "second")):
        site.sweep(told(name), jobs=2, name=sweep)
    assert "OTHER" in site.run("plan", "specs/first.yaml", code=1)
    site.shop.env["OTHER"] = values["OTHER"]
    site.apply("specs/first.yaml")
    until(lambda: ledger.executions == 1, "a job begins")
    # This machine forgets the one, and learns the other; the first sweep's second job is still to be run.
    del site.shop.env["OTHER"]
    site.shop.env["TOKEN"] = values["TOKEN"]
    assert lines(site.run("plan", "specs/second.yaml"), "lab/h3") == ["~ lab/h3: other secrets"]
    site.run("plan", "-o", "second.plan.json", "specs/second.yaml")
    site.apply("second.plan.json")
    ledger.release()
    for name, sweep in (("OTHER", "first"), ("TOKEN", "second")):
        until(lambda: site.shop.states(sweep) == {"succeeded": 2}, "all jobs end")  # noqa: B023
        printed = site.run("logs", sweep)
        assert printed.count(hashlib.md5(values[name].encode(), usedforsecurity=False).hexdigest()) == 2
    for value in values.values():
        assert value not in site.said
        assert not holding(value, site.store) and not holding(value, site.shop.root.parent)
        found = [path for place in (host.home, host.root / "tmp") for path in holding(value, place)]
        assert found and all(path.endswith("/secrets") for path in found)
    site.run("destroy", "-y")
    assert not any(holding(value, host.home) for value in values.values())


def test_whom_hosts_obey_is_changed_by_the_next_apply_and_interrupts_nothing(lab_site: LabSite, tmp_path: Path) -> None:
    site = lab_site
    (host,) = site.hosts("h3")
    site.shop.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    ledger = site.ledger(host)
    ledger.hold()
    site.providers("h3", max_slots=1)
    site.sweep(jobs=2)
    site.run("plan")
    assert not list(tmp_path.rglob("signing_key")), "a plan makes no key"
    site.apply()
    until(lambda: ledger.executions == 1, "the host works for who applied")
    seen = site.observe("h3").agents
    site.run("trust", make_public(2, "bob@lab").line, "--name", "bob")
    assert lines(site.run("plan"), "lab/h3") == ["~ lab/h3: other signers"]
    (path,) = (host.home / ".monkey").glob("hosts/*/*/signers")
    assert "bob" not in path.read_text(), "until the next apply, a host obeys whom it obeyed"
    assert lines(site.apply(), "lab: h3: updated")
    assert [line.split()[0] for line in path.read_text().splitlines()] == ["owner", "bob"]
    assert host.within("stat", "-c", "%a %U", f"/{path.relative_to(host.root)}") == "600 worker\n"
    assert site.observe("h3").agents == seen, "the agent reads the list again by itself"
    path.chmod(0o666)
    assert lines(site.run("plan"), "lab/h3") == ["~ lab/h3: other signers"], "others may have changed it"
    site.run("trust", "--remove", "bob")
    site.apply()
    assert path.read_text().startswith("owner ") and "bob" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    ledger.release()
    until(lambda: [row["state"] for row in site.rows()] == ["succeeded"] * 2, "all jobs end")


def test_one_queue_for_machines_here_and_there(lab_site: LabSite) -> None:
    site = lab_site
    (there,) = site.hosts("h2")
    site.providers("h2", max_slots=1, more={"here": {"type": "local", "max_slots": 1}})
    # Where it is kept depends on who runs it.
    command = "command: [sh, -c, 'exec python3 job.py \"$HOME/ledger\" \"$@\"', sh, '0.05', '{i}']"
    site.sweep(f"{command}\nprovider: [here, lab]\n", jobs=12)
    ledgers = [site.ledger(there), type(site.shop.ledger)(site.shop.root.parent / "home/ledger")]
    for ledger in ledgers:
        ledger.hold()
    site.apply()
    until(lambda: all(ledger.executions for ledger in ledgers), "both work")
    for ledger in ledgers:
        ledger.release()
    until(lambda: [row["state"] for row in site.rows()] == ["succeeded"] * 12, "all jobs end")
    assert sum(ledger.executions for ledger in ledgers) == 12 and not any(ledger.overlaps for ledger in ledgers)
    rows = site.shop.json("list", "instances")
    assert ("lab", "h2") in {(row["fleet"], row["machine"]) for row in rows}
