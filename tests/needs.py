"""What tests need of the machine beyond `[test]`: without it they skip, or fail where MONKEY_REQUIRE names it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from functools import cache, partial
from pathlib import Path

import pytest

from tests import (
    browser,
    ci_linters,
    contained,
    forge_programs,
    host_root,
    local_slurm,
    own_kernel,
    ray_samples,
    services,
    sshd,
)
from tests.folding import machine as folding_machine
from tests.kubernetes import programs as kubernetes_programs
from tests.nfs import site as nfs_site

Report = pytest.CollectReport


def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _find_server(name: str) -> str | None:
    """Return a program, also from where Debian keeps servers."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")


#: Things that are no program on the PATH: how to find out whether they are here.
PROBES: dict[str, Callable[[], bool]] = {
    "act": lambda: forge_programs.act_program().exists(),
    "actionlint": lambda: ci_linters.actionlint_program().exists(),
    "axe-core": lambda: browser.axe_script().exists(),
    "azurite": lambda: shutil.which("node") is not None and services.azurite_program().exists(),
    # A disk that does not tell upper from lower case, in a machine with a kernel of its own.
    "folding-disk": folding_machine.available,
    "gitea": lambda: shutil.which("git") is not None and forge_programs.gitea_program().exists(),
    "gitlab-ci-local": lambda: shutil.which("node") is not None and ci_linters.gitlab_program().exists(),
    "grafana": lambda: shutil.which("node") is not None and services.grafana_modules().exists(),
    "hosts": host_root.available,
    "iam": lambda: shutil.which("node") is not None and services.iam_modules().exists(),
    "influxd": lambda: services.influxd_program("influxd").exists(),
    "influxd1": lambda: services.influxd_program("influxd1").exists(),
    "kubernetes": kubernetes_programs.has_nodes,
    "charliecloud": lambda: all(shutil.which(name) for name in ("ch-run", "ch-image", "unshare")),
    "docker": lambda: all(map(_find_server, ("docker", "dockerd"))),
    # A space of process numbers of one's own.
    "contained": contained.is_possible,
    # Mounting in a namespace of one's own: for a full disk, and for a store that is unmounted.
    "mount": lambda: _succeeds(["unshare", "--mount", "--map-root-user", "mount", "-t", "tmpfs", "none", "/mnt"]),
    # Machines with a kernel of their own, and an NFS server.
    "nfs": nfs_site.available,
    # A Debian with a kernel of its own: control groups of version 2, whatever this machine has.
    "own-kernel": own_kernel.available,
    "pulumi": lambda: services.pulumi_directory() is not None and _is_installed("pulumi"),
    "ray": lambda: ray_samples.ray_directory().exists(),
    "slurm": local_slurm.is_installed,
    # Where Debian keeps it, the PATH of a user does not look.
    "sshd": lambda: sshd.program() is not None,
    # A container may have no devpts; nothing can open a terminal of its own there.
    "terminal": lambda: _succeeds([sys.executable, "-c", "import os; os.openpty()"]),
    # A user without rights over everything: we are one, or may become one.
    "unprivileged": lambda: os.geteuid() != 0 or _succeeds(["setpriv", "--reuid=65534", "--clear-groups", "true"]),
}

#: Module that tests import beyond the extra `[test]` → the name by which a test asks for its distribution.
LIBRARIES = {
    "boto3": "boto3",
    "botocore": "boto3",
    "cel": "common-expression-language",
    "dvc": "dvc",
    "dvc_data": "dvc",
    "google": "google-auth",
    "matplotlib": "matplotlib",
    "plotext": "plotext",
    "grafana_foundation_sdk": "grafana-foundation-sdk",
    "grpc": "pulumi-library",
    "moto": "moto",
    "numpy": "pandas",
    "pandas": "pandas",
    "playwright": "playwright",
    "pulumi": "pulumi-library",
    "pulumi_aws": "pulumi-aws",
    "pulumi_gcp": "pulumi-gcp",
    "pyarrow": "pyarrow",
    "scipy": "scipy",
    "ruff": "ruff",
    "semver": "pulumi-library",
}
PROBES |= {name: partial(_is_installed, name.removesuffix("-library")) for name in LIBRARIES.values()}


def require_thing(name: str) -> str:
    """Return where a thing is; skips the test without it, or fails it where MONKEY_REQUIRE names the thing."""
    found = _find(name)
    if found is not None:
        return found
    if is_required(name):
        pytest.fail(f"MONKEY_REQUIRE names {name}, {_absence(name)}")
    pytest.skip(f"{name}, {_absence(name)}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip or fail a test that is marked with what is not here, before its fixtures are made."""
    for mark in item.iter_markers("needs"):
        require_thing(*mark.args)


def is_required(name: str) -> bool:
    """Say whether MONKEY_REQUIRE names it."""
    return name in os.environ.get("MONKEY_REQUIRE", "").split(",")


def _absence(name: str) -> str:
    """Return what a reader is told of a missing thing."""
    how = "`pip install -e '.[dev]'`" if name in LIBRARIES.values() else "`invoke services`"
    return f"which is not here ({how} installs what it can)"


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Report, Report]:
    """Skip a file or a folder whose import lacks a library, as `require` skips a test."""
    report = yield
    lacks = re.findall(r"ModuleNotFoundError: No module named '(\w+)", str(report.longrepr)) if report.failed else []
    name = LIBRARIES.get(lacks[-1]) if lacks else None
    if name is not None and _find(name) is None and not is_required(name):
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"Skipped: {name}, {_absence(name)}")
    return report


@cache
def _find(name: str) -> str | None:
    probe = PROBES.get(name)
    if probe is not None:
        return name if probe() else None
    # A tool of our own environment counts, whether or not it is activated.
    return shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))


def _succeeds(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
