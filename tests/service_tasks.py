"""The task that installs what some tests talk to or compare with. `tasks.py` has it for invoke."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from invoke.context import Context
from invoke.tasks import task

from tests import ci_linters, forge_programs, host_root, ray_samples
from tests import pythons as others
from tests import services as servers
from tests.daemon_policy import hold_daemons
from tests.kubernetes import programs as kubernetes_programs
from tests.nfs import site as nfs_site

#: Program that a test asks for by `require` → the Debian package that has it.
SERVICES = {
    "ps": "procps",
    "strace": "strace",
    "parallel": "parallel",
    "rclone": "rclone",
    **dict.fromkeys(("ssh", "ssh-keygen"), "openssh-client"),
    "sshd": "openssh-server",
    "munged": "munge",
    "slurmctld": "slurm-wlm",
    "sbatch": "slurm-client",
    "docker-registry": "docker-registry",
    "podman": "podman runc catatonit uidmap python3-venv",
    "ch-run": "charliecloud python3-lark python3-requests",
    "dockerd": "docker.io",
    "busybox": "busybox-static",
    "rsync": "rsync",
    "gcc": "gcc",
    "g++": "g++",
    "node": "nodejs",
    "pdflatex": "texlive-latex-recommended",
    "chromium": "chromium fonts-dejavu-core",
    "systemd-analyze": "systemd",
    **host_root.PROGRAMS,
    **nfs_site.PROGRAMS,
    **kubernetes_programs.PACKAGES,
}
#: Where Debian keeps servers; the PATH of a user does not look there.
SBIN = "/usr/sbin:/sbin"


def _which(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:{SBIN}")


@task
def services(c: Context) -> None:
    """Install what some tests talk to or compare with: of Debian's packages, of npm's, Pulumi, servers, hosts."""
    _programs(c)
    _pulumi()
    for name in servers.INFLUXD:
        _influxd(name)
    _forge()
    _hosts()
    _pythons()
    _npm(servers.AZURITE, servers.azurite_program(), servers.install_azurite)
    _npm(servers.GRAFANA, servers.grafana_modules(), servers.install_grafana)
    _npm(servers.IAM, servers.iam_modules(), servers.install_iam)
    ci_linters.install_linters()
    _ray()


def _npm(package: str, place: Path, install: Callable[[], None]) -> None:
    if place.exists():
        print(f"services: {package} is here")
    elif shutil.which("npm") is None:
        print(f"services: no npm to install {package} with; its tests will be skipped")
    else:
        print(f"services: installing {package} into {servers.CACHE}", flush=True)
        install()


def _ray() -> None:
    if ray_samples.ray_directory().exists():
        print(f"services: {ray_samples.RAY} is here")
        return
    print(f"services: taking two files of {ray_samples.RAY} into {servers.CACHE}", flush=True)
    try:
        ray_samples.install_ray()
    except (OSError, subprocess.CalledProcessError) as exc:
        print(f"services: no {ray_samples.RAY} ({exc}); its tests will be skipped")


def _pulumi() -> None:
    if servers.pulumi_directory():
        print(f"services: Pulumi is here ({servers.pulumi_directory()})")
        return
    print(f"services: installing {servers.PULUMI} into {servers.CACHE}", flush=True)
    try:
        servers.install_pulumi()
    except (OSError, subprocess.CalledProcessError) as exc:
        print(f"services: no Pulumi ({exc}); its tests will be skipped")
        print("          https://www.pulumi.com/docs/install/ installs it; or install Go, to build it here")


def _influxd(name: str) -> None:
    needed = ("go", "cargo", "cc") if name == "influxd" else ("go",)
    missing = [program for program in needed if shutil.which(program) is None]
    version = servers.INFLUXD[name]
    if servers.influxd_program(name).exists():
        print(f"services: {version} is here")
    elif missing:
        print(f"services: no {' and no '.join(missing)} to build {version} with; its tests will be skipped")
        print("          https://go.dev/dl and https://rustup.rs tell how to install them")
    else:
        print(f"services: building {version} into {servers.CACHE}, some minutes", flush=True)
        try:
            servers.install_influxd(name)
        except (OSError, subprocess.CalledProcessError) as exc:
            print(f"services: no {version} ({exc}); its tests will be skipped")


def _forge() -> None:
    for name, (program, install, needed) in {**forge_programs.PROGRAMS, **kubernetes_programs.PROGRAMS}.items():
        missing = [word for word in needed if shutil.which(word) is None]
        if program().exists():
            print(f"services: {name} is here")
        elif missing:
            print(f"services: no {' and no '.join(missing)} to build {name} with; its tests will be skipped")
        else:
            print(f"services: building {name} into {servers.CACHE}, some minutes", flush=True)
            try:
                install()
            except (OSError, subprocess.CalledProcessError) as exc:
                print(f"services: no {name} ({exc}); its tests will be skipped")


def _hosts() -> None:
    if host_root.root().exists():
        print(f"services: {host_root.root().name} is here")
    elif os.geteuid() != 0 or not all(map(_which, host_root.PROGRAMS)):
        programs = ", ".join(host_root.PROGRAMS)
        print(f"services: hosts are booted by root alone, with {programs}; their tests are skipped")
    else:
        print(f"services: making {host_root.root()}, in about a minute", flush=True)
        host_root.install_root()


def _pythons() -> None:
    for name, versions in others.PYTHONS.items():
        try:
            found = others.find(name) or others.install(name)
        except (OSError, subprocess.CalledProcessError) as exc:
            print(f"services: no {name} ({versions}), {exc}; no tests will be run on it")
        else:
            print(f"services: {name} is here ({found})")


def _programs(c: Context) -> None:
    missing = {program: package for program, package in SERVICES.items() if _which(program) is None}
    if not missing:
        print(f"services: {', '.join(SERVICES)} are here")
        return
    packages = " ".join(sorted(missing.values()))
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        print(f"services: missing {', '.join(missing)}; their tests will be skipped")
        print(f"          on Debian or Ubuntu: sudo apt-get install {packages}")
        return
    print(f"services: installing {packages}", flush=True)
    quiet = "DEBIAN_FRONTEND=noninteractive apt-get -qq"
    with hold_daemons():
        c.run(f"{quiet} update && {quiet} install -y --no-install-recommends {packages} >/dev/null", in_stream=False)
