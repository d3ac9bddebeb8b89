"""The root directory that tests' hosts are made from: a Debian, made once and cached by its recipe."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.services import CACHE

#: The unprivileged user of every host.
USER = "worker"
SUITE = "bookworm"
#: Slurm's daemons and programs, and what authenticates them; a host that is to have them starts them.
SLURM = ("munge", "slurm-wlm", "slurm-client")
PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "dbus-user-session", "libpam-systemd", "openssh-server", "cron"),
    *("python3", "python3-venv", "iproute2", "procps", "nftables"),
    *SLURM,
)
#: What those packages would start at every boot.
SLURM_UNITS = ("munge.service", "slurmctld.service", "slurmd.service")
#: What slows a boot down, or wants the internet.
MASKED = ("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer")
#: Programs that a lab needs, and the Debian packages that have them.
PROGRAMS = {"debootstrap": "debootstrap", "systemd-nspawn": "systemd-container", "nft": "nftables", "ip": "iproute2"}


def root() -> Path:
    """Return where the root is that all hosts are made from, or would be."""
    recipe = hashlib.sha256(repr((SUITE, PACKAGES, SLURM_UNITS, MASKED, USER, 1)).encode()).hexdigest()[:12]
    return CACHE / f"host-{SUITE}-{recipe}"


def available() -> bool:
    """Say whether hosts can be booted here."""
    return os.geteuid() == 0 and all(map(shutil.which, PROGRAMS)) and root().exists()


def install_root() -> None:
    """Make the root: aside, then renamed, so that half of it is never taken for all."""
    aside = CACHE / f"{root().name}.{os.getpid()}"
    CACHE.mkdir(parents=True, exist_ok=True)
    try:
        include = f"--include={','.join(PACKAGES)}"
        run("nice", "debootstrap", "--variant=minbase", include, SUITE, str(aside))
        _furnish(aside)
        with contextlib.suppress(FileExistsError, OSError):  # somebody else was faster
            aside.rename(root())
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _furnish(tree: Path) -> None:
    run("useradd", "--root", str(tree), "--create-home", "--shell", "/bin/bash", USER)
    # A host's keys are made for each.
    for key in (tree / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    run("systemctl", "--quiet", "--root", str(tree), "enable", "systemd-networkd", "ssh", "cron")
    run("systemctl", "--quiet", "--root", str(tree), "disable", "systemd-networkd-wait-online")
    run("systemctl", "--quiet", "--root", str(tree), "mask", *MASKED)
    run("systemctl", "--quiet", "--root", str(tree), "disable", *SLURM_UNITS)


def run(*command: str) -> None:
    """Run a program that must succeed."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
