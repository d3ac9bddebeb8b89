"""What a host can refuse, and how it is said: one clear message each, with the fix."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from monkey.errors import FleetError, HostAway
from monkey.spec.project.ssh_host import parse_ssh_host
from monkey_stacks.ssh.operations import converge_host, inspect_host, observe_host
from tests.acceptance.site import Site, left_on
from tests.host_root import USER
from tests.hosts import Machine
from tests.sshd import keygen

pytestmark = pytest.mark.slow


def refusal(site: Site, host: str = "h3", **about: object) -> FleetError:
    """Return what converging a host raises."""
    with pytest.raises(FleetError) as caught:
        converge_host(parse_ssh_host(host), site.wanted(**about))
    assert caught.value.hint
    return caught.value


@contextmanager
def instead(path: Path, other: Path) -> Iterator[None]:
    """Let another file be at `path` for a while."""
    kept = path.read_bytes()
    shutil.copyfile(other, path)
    try:
        yield
    finally:
        path.write_bytes(kept)


def test_keys(site: Site, tmp_path: Path) -> None:
    (host,) = site.hosts("h3")
    keygen(tmp_path / "other")
    with instead(site.lab.home / "id", tmp_path / "other"), instead(site.lab.home / "id.pub", tmp_path / "other.pub"):
        error = refusal(site)
    assert "h3 accepts none of our keys" in error.message and "Permission denied (publickey" in error.message
    assert "ssh-copy-id h3" in (error.hint or "")
    known = tmp_path / "known"
    public = " ".join((tmp_path / "other.pub").read_text().split()[:2])
    known.write_text(f"{host.address} {public}\n")
    with instead(site.lab.known_hosts, known):
        error = refusal(site)
        assert "h3: its host key has changed" in error.message and str(site.lab.known_hosts) in error.message
        advised = f"sed -i 1d {site.lab.known_hosts}"
        assert advised in (error.hint or "")
        subprocess.run(advised.split(), check=True)
        error = refusal(site)
    assert "h3: its host key is not known here" in error.message and "`ssh h3`" in (error.hint or "")
    assert not (host.home / ".monkey").exists()


def test_a_host_that_is_away(site: Site) -> None:
    (host,) = site.hosts("h3")
    host.cut()
    error = refusal(site)
    assert isinstance(error, HostAway) and "h3 does not answer" in error.message and "timed out" in error.message
    host.mend()
    error = refusal(site, "h3:2")
    assert isinstance(error, HostAway) and "h3:2 refuses connections" in error.message
    error = refusal(site, "worker@no-such-host.invalid")
    assert isinstance(error, HostAway) and "there is no host 'no-such-host.invalid'" in error.message


def test_a_store_that_the_host_cannot_reach(site: Site) -> None:
    site.hosts("h3")
    with pytest.raises(FleetError) as seen:
        inspect_host(parse_ssh_host("h3"), site.wanted(store="/no/such/store"))
    error = refusal(site, store="/no/such/store")
    assert (error.message, error.hint) == (seen.value.message, seen.value.hint), "a plan tells it as well"
    assert error.message.startswith("h3 cannot use the store: ") and "/no/such/store" in error.message
    assert "store: ssh://THAT-MACHINE/no/such/store" in (error.hint or "")
    assert observe_host(parse_ssh_host("h3"), site.wanted(store="/no/such/store")).living is None


@contextmanager
def python(host: Machine, text: str | None) -> Iterator[None]:
    """Give a host another python3, or none."""
    program, hidden = host.root / "usr/bin/python3", host.root / "usr/bin/python3.11"
    hidden.rename(hidden.with_name("hidden"))
    link = program.readlink()
    program.unlink()
    if text is not None:
        program.write_text(text)
        program.chmod(0o755)
    try:
        yield
    finally:
        program.unlink(missing_ok=True)
        program.symlink_to(link)
        hidden.with_name("hidden").rename(hidden)


OLD = "#!/bin/sh\n[ $1 = --version ] && echo Python 3.9.2\nexit 1\n"


def test_pythons(site: Site) -> None:
    (host,) = site.hosts("h3")
    with python(host, None):
        assert "h3: expected Python 3.11 or newer, found no python3" in refusal(site).message
    with python(host, OLD):
        error = refusal(site)
        assert "h3: expected Python 3.11 or newer, found Python 3.9.2" in error.message
        assert "uv python install" in (error.hint or "")


def test_no_room_and_no_right_to_write(site: Site) -> None:
    (host,) = site.hosts("h3")
    before = left_on(host)
    host.within("mkdir", "-p", "/srv/none", "/srv/small", "/srv/few")
    error = refusal(site, workdir="/srv/none/monkey")
    assert "h3: no right to write to /srv/none/monkey" in error.message and "'workdir:'" in (error.hint or "")
    host.within("mount", "-t", "tmpfs", "-o", f"size=1m,uid={host.owner[0]}", "none", "/srv/small")
    error = refusal(site, workdir="/srv/small")
    assert "h3: its disk is full: expected 64 MiB free at /srv/small, found 1" in error.message
    # Full in the middle of it: room is left, but not for so many files.
    host.within("mount", "-t", "tmpfs", "-o", f"size=100m,nr_inodes=60,uid={host.owner[0]}", "none", "/srv/few")
    error = refusal(site, workdir="/srv/few")
    assert "h3: its disk is full (/srv/few/bundles/" in error.message
    assert not host.within("sh", "-c", "ls -A /srv/few")
    host.within("umount", "/srv/small", "/srv/few")
    assert left_on(host) == before


def test_a_login_that_speaks(site: Site) -> None:
    """Whatever a login prints, and in whatever shell: it is not taken for an answer."""
    (host,) = site.hosts("h3")
    profile = host.home / ".bashrc"
    kept = profile.read_text()
    try:
        profile.write_text("echo welcome; echo monkey- {}; echo be careful >&2\n" + kept)
        assert site.observe("h3").user == USER
    finally:
        profile.write_text(kept)


@contextmanager
def ending_all_at_logout(host: Machine) -> Iterator[None]:
    """Have a host end whatever its users run when they log out."""
    conf = host.root / "etc/systemd/logind.conf"
    kept = conf.read_text()
    try:
        conf.write_text("[Login]\nKillUserProcesses=yes\n")
        host.systemctl("restart", "systemd-logind")
        yield
    finally:
        conf.write_text(kept)
        host.systemctl("restart", "systemd-logind")


def test_a_host_that_ends_all_at_logout(site: Site) -> None:
    (host,) = site.hosts("h2")
    with ending_all_at_logout(host):
        error = refusal(site, "h2")
        assert "KillUserProcesses=yes" in error.message and "loginctl enable-linger worker" in (error.hint or "")
    assert not site.observe("h2").ends_at_logout


@pytest.mark.skipif(shutil.which("uv") is None, reason="needs uv")
def test_the_python_that_uv_brought(site: Site) -> None:
    """Where the host has none that will do, uv's is found."""
    (host,) = site.hosts("h3")
    # It tells what it runs where it is itself: on the PATH there may be a script in its place.
    command = ["uv", "run", "--no-project", "sh", "-c", "echo $UV"]
    uv = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    programs = host.home / ".local/bin"
    installed = host.home / ".local/share/uv/python/cpython-3.11.2-linux-x86_64-gnu/bin"
    for directory in (programs, installed):
        directory.mkdir(parents=True)
    shutil.copy(uv, programs / "uv")
    with python(host, OLD):
        (installed / "python3.11").symlink_to("/usr/bin/hidden")
        assert site.observe("h3").target.python == (3, 11)
    shutil.rmtree(host.home / ".local")
