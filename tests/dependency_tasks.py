"""Tasks about packages: what is known against them, their lock, their licences. `tasks.py` has them for invoke."""

from __future__ import annotations

import subprocess

from invoke.context import Context
from invoke.exceptions import Exit
from invoke.tasks import task

from tests import dependencies


@task
def audit(c: Context) -> None:
    """Look for known vulnerabilities of the locked packages; what is decided stands in .ci/dependencies.toml."""
    print("$ pip-audit", flush=True)
    said = dependencies.audit_lock()
    if said.missing:
        print(f"audit: not made, or not of all: {said.missing}")
    if said.found:
        raise Exit("\n".join(["audit: `invoke lock --upgrade`, or decide in .ci/dependencies.toml:", *said.found]), 1)


@task(help={"upgrade": "take the newest versions that pyproject.toml permits; else only what is missing comes"})
def lock(c: Context, upgrade: bool = False) -> None:
    """Write .ci/requirements.txt anew, which CI installs: all extras, with versions and hashes."""
    try:
        dependencies.write_lock(upgrade=upgrade)
    except (OSError, RuntimeError, subprocess.CalledProcessError) as exc:
        raise Exit(f"lock: {exc}", 1) from exc


@task
def licences(c: Context) -> None:
    """List the licence of each package that is installed here."""
    for name, version, licence in dependencies.list_licences():
        print(f"{name:32} {version:16} {licence}")
