"""What keeps machines from being set up, each told once and clearly by plan and apply, and never in others' way."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.acceptance.lab_site import LabSite, lines
from tests.acceptance.shop import until
from tests.acceptance.test_host_refusals import OLD, ending_all_at_logout, python
from tests.sshd import keygen

pytestmark = pytest.mark.slow
#: Hosts that cannot be used, to what is said of each and what would help.
REFUSED = {
    "unknown": ("its host key is not known here", "run `ssh unknown` once, compare the fingerprint"),
    "changed": ("its host key has changed", "if you know why: sed -i 1d "),
    "keyless": ("accepts none of our keys (", "ssh-copy-id keyless"),
    "nowhere": ("does not answer (", "is it on, and is a firewall in between?"),
    "h2": ("expected Python 3.11 or newer, found Python 3.9.2", "uv python install"),
    "h3": ("ends whatever a user runs when he logs out (KillUserProcesses=yes)", "loginctl enable-linger worker"),
}


def aliases(site: LabSite, base: Path) -> Path:
    """Return an ssh_config that knows h3 by other names, each of which cannot be used for another reason."""
    keygen(base / "other")
    public = " ".join((base / "other.pub").read_text().split()[:2])
    (base / "none").write_text("")
    (base / "wrong").write_text(f"changed {public}\n")
    right = site.lab.known_hosts
    address = f"{site.lab.network}.13"
    for name, to, known, identity in (
        ("unknown", address, base / "none", site.lab.home / "id"),
        ("changed", address, base / "wrong", site.lab.home / "id"),
        ("keyless", address, right, base / "other"),
        ("nowhere", f"{site.lab.network}.99", right, site.lab.home / "id"),
    ):
        with (base / "config").open("a") as config:
            config.write(f"Host {name}\n  HostName {to}\n  User worker\n  IdentityFile {identity}\n")
            config.write(f"  HostKeyAlias {'changed' if name == 'changed' else to}\n")
            config.write(f"  UserKnownHostsFile {known}\n  IdentitiesOnly yes\n  IdentityAgent none\n")
    with (base / "config").open("a") as config:
        config.write(site.lab.config.read_text())
    return base / "config"


def test_each_host_says_what_is_wrong_with_it_and_the_others_work(lab_site: LabSite, tmp_path: Path) -> None:
    site = lab_site
    _, old, refused = site.hosts("h1", "h2", "h3")
    before = site.left(old, refused)
    site.shop.env["MONKEY_SSH_CONFIG"] = str(aliases(site, tmp_path))
    site.providers(*REFUSED, "h1", max_slots=1)
    site.sweep(jobs=2)
    with python(old, OLD), ending_all_at_logout(refused):
        planned = site.run("plan")
        applied = site.apply()
    for host, (what, help_) in REFUSED.items():
        assert lines(planned, f"lab/{host}") == [f"! lab/{host}"]
        assert planned.count(help_) == 1, f"the plan helps with {host}"
        # Of the apply, the first half is the plan.
        (failed,) = lines(applied, f"lab: {host}: FAILED:")
        assert what in failed and failed.count(host) <= 2 + help_.count(host), failed
        assert applied.count(help_) == 2, f"the apply helps with {host}"
        assert what in planned
    assert "Traceback" not in site.said and "pulumi" not in site.said.lower()
    until(lambda: [row["state"] for row in site.rows()] == ["succeeded"] * 2, "the good host does all")
    assert site.left(old, refused) == {**before, "store": site.left()["store"]}


def test_a_workdir_that_cannot_be_used(lab_site: LabSite) -> None:
    site = lab_site
    (host,) = site.hosts("h3")
    before = site.left(host)
    host.within("mkdir", "-p", "/srv/none", "/srv/small")
    host.within("mount", "-t", "tmpfs", "-o", f"size=1m,uid={host.owner[0]}", "none", "/srv/small")
    site.sweep(jobs=1)
    for workdir, what, help_ in (
        ("/srv/none/monkey", "no right to write to /srv/none/monkey", "give the user worker the right to"),
        ("/srv/small", "its disk is full: expected 64 MiB free at /srv/small, found 1", "free some space there"),
    ):
        site.providers("h3", workdir=workdir)
        said = site.run("plan", "--detailed-exitcode", code=2)
        assert lines(said, "lab/h3") == ["! lab/h3"] and what in said and help_ in said
        assert "no machine of this provider can be used now" in said and "1 machine cannot be used now" in said
        said = site.apply(code=1)
        assert lines(said, f"lab: h3: FAILED: {what}") and said.count(what) == 2
        assert "no machine of provider 'lab' could be set up; why is told above" in said
    host.within("umount", "/srv/small")
    assert site.left(host) == before
    assert not site.shop.json("list", "sweeps"), "nobody would have done the work"


def test_what_this_machine_lacks(lab_site: LabSite) -> None:
    site = lab_site
    site.hosts("h3")
    site.sweep(jobs=1)
    site.providers("h3", store=str(site.shop.root / "here"))
    for verb in ("plan", "apply"):
        said = site.run(verb, code=1)
        assert "h3 cannot reach the store: " in said and "is a directory of this machine" in said
        assert "store: ssh://h3/~/monkey-store" in said
    assert not (site.shop.root / "here").exists()
    site.providers("h3")
    site.shop.env |= {"PATH": site.bare, "https_proxy": "http://127.0.0.1:9"}
    assert shutil.which("pulumi", path=site.bare) is None
    said = site.apply(code=1)
    assert "installing Pulumi 3." in said and lines(said, "error: there is no Pulumi on this machine")
    assert "install it where there is a network, or by hand" in said
