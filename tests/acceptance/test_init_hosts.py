"""`monkey init --provider ssh` on real hosts: what they have is written, and nothing where one cannot be used."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop
from tests.acceptance.slurm_desk import say
from tests.acceptance.test_host_refusals import instead, python
from tests.hosts import Lab
from tests.sshd import Sshd, keygen, serve

pytestmark = pytest.mark.slow

SSH = ("--provider", "ssh")


def test_a_project_is_begun_by_what_hosts_have(lab: Lab, shop: Shop, tmp_path: Path) -> None:
    """The entry is one that a plan takes; a host that cannot be used hinders it, and is told with the fix."""
    lab("h1", "h3")
    shop.env["MONKEY_SSH_CONFIG"] = str(lab.config)
    for path in shop.root.iterdir():
        path.rename(tmp_path / path.name)
    assert "your ssh configuration has h1, h2, h3, store, twin1, twin2, pair1, pair2" in say(shop, "init", *SSH, code=1)
    both = ("--host", "h1", "--host", "worker@h3:22")
    said = say(shop, "init", *SSH, *both)
    assert re.search(
        r"^h1: \d+ CPUs?, [\d.]+ GiB, disk [\d.]+ \w+ free of [\d.]+ \w+, Python 3.11, systemd$", said, re.M
    )
    assert "\nworker@h3:22: " in said and "Python 3.11, cron" in said and "provider: lab.\n" in said
    text = (shop.root / "monkey.yaml").read_text()
    assert "store: ssh://h1/~/monkey-store\n" in text and '      - "worker@h3:22"  # ' in text
    spec = shop.root / "specs/experiment.yaml"
    spec.write_text(spec.read_text() + "provider: lab\n")
    planned = say(shop, "plan")
    assert (
        "lab/h1: agent, kept alive by systemd" in planned and "lab/worker@h3:22: agent, kept alive by cron" in planned
    )

    (h3,) = lab("h3")
    project = shop.root / "monkey.yaml"
    project.write_text("store: s3://bucket/lab  # ours\n")
    with python(h3, None):
        said = say(shop, "init", *SSH, *both, code=1)
    assert "worker@h3:22: expected Python 3.11 or newer, found no python3; nothing was written" in said
    assert "h1: " in said and project.read_text() == "store: s3://bucket/lab  # ours\n"
    said = say(shop, "init", *SSH, *both)
    assert "Added to monkey.yaml: providers." in said
    assert project.read_text().startswith(
        "store: s3://bucket/lab  # ours\nproviders:\n  local: {type: local}\n  lab:\n"
    )
    said = say(shop, "init", "new", *SSH, "--host", "h1", "--host", "worker@h1:22", code=1)
    assert "h1 and worker@h1:22 are the same machine (h1)" in said and not (shop.root / "new").exists()


@pytest.mark.needs("sshd")
def test_no_host_key_is_taken_on_trust(shop: Shop, tmp_path: Path) -> None:
    """Neither an unknown one nor another one; known hosts stay as they are, whatever the user's configuration says."""
    keygen(tmp_path / "other")
    with serve(tmp_path / "host") as server:
        shop.env |= {"MONKEY_SSH_CONFIG": str(config(server))}
        asked = ("init", "new", *SSH, "--host", "there", "--store", "s3://bucket/lab")
        server.known_hosts.write_text("")
        said = say(shop, *asked, code=1)
        assert "there: its host key is not known here; nothing was written" in said and "run `ssh there` once" in said
        assert server.known_hosts.read_text() == ""
        server.know(tmp_path / "other.pub")
        before = server.known_hosts.read_text()
        assert "there: its host key has changed" in say(shop, *asked, code=1)
        assert server.known_hosts.read_text() == before and not (shop.root / "new").exists()
        server.know(server.home / "host_key.pub")
        with instead(server.home / "authorized_keys", tmp_path / "other.pub"):
            assert "there accepts none of our keys" in say(shop, *asked, code=1)
        assert "there: " in say(shop, *asked) and (shop.root / "new/monkey.yaml").exists()


def config(server: Sshd) -> Path:
    """Return an ssh_config that would take any key, if anybody let it."""
    file = server.home / "lax"
    lax = "StrictHostKeyChecking accept-new\n"
    known = f"UserKnownHostsFile {server.known_hosts}\nGlobalKnownHostsFile none\n"
    file.write_text(lax + known + (server.home / ".ssh/config").read_text())
    return file


@pytest.mark.needs("sshd")
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts something of a host's own")
def test_a_store_that_hosts_do_not_have_is_told(shop: Shop, tmp_path: Path) -> None:
    """Where a directory is the store, each host is asked for it; of one to be made, for what it is to lie in."""
    shared = tmp_path / "shared"
    (shared / "lab").mkdir(parents=True)
    server = Sshd(tmp_path / "host")
    server.start(("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(shared)))
    try:
        shop.env |= {"MONKEY_SSH_CONFIG": str(config(server))}
        address = f"127.0.0.1:{server.port}"
        (server.home / "lax").write_text((server.home / "lax").read_text().replace("Host there", "Host 127.0.0.1"))
        asked = ("init", "new", *SSH, "--host", address, "--store")
        said = say(shop, *asked, str(shared / "lab/store"), code=1)
        assert f"{address} cannot use the store: there is no directory {shared}/lab; nothing was written" in said
        say(shop, *asked, str(shared / "store"))
        assert f'store: "{shared}/store"\n' in (shop.root / "new/monkey.yaml").read_text()
    finally:
        server.stop()
