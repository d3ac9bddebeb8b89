"""What judges files for CI without a network: actionlint, and gitlab-ci-local, which has GitLab's own schema.

`install_linters` installs what judges the page in a browser, too.

They lie in the user's cache, by name and version, as all that `tests.services` installs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests import browser
from tests.services import CACHE, install_npm

ACTIONLINT = "actionlint@1.7.12"
GITLAB = "gitlab-ci-local@4.65.1"


def actionlint_program() -> Path:
    """Return where actionlint is, or would be."""
    return CACHE / ACTIONLINT / "actionlint"


def gitlab_program() -> Path:
    """Return where gitlab-ci-local's program for node is, or would be."""
    return CACHE / GITLAB / "node_modules/gitlab-ci-local/src/index.js"


def install_linters() -> None:
    """Install them, where they are missing and something to do so with is here."""
    _install(ACTIONLINT, actionlint_program(), "go")
    _install(GITLAB, gitlab_program(), "npm")
    _install(browser.AXE, browser.axe_script(), "npm")


def _install(name: str, program: Path, needed: str) -> None:
    if program.exists():
        print(f"services: {name} is here")
    elif shutil.which(needed) is None:
        print(f"services: no {needed} to install {name} with; its tests will be skipped")
    else:
        print(f"services: installing {name} into {CACHE}", flush=True)
        try:
            install_npm(name, CACHE / name) if needed == "npm" else _install_actionlint()
        except (OSError, subprocess.CalledProcessError) as exc:
            print(f"services: no {name} ({exc}); its tests will be skipped")


def _install_actionlint() -> None:
    aside = CACHE / f"{ACTIONLINT}.{os.getpid()}"
    package = f"github.com/rhysd/actionlint/cmd/actionlint@v{ACTIONLINT.partition('@')[2]}"
    try:
        env = {**os.environ, "GOBIN": str(aside)}
        subprocess.run(["go", "install", "-trimpath", "-ldflags", "-s -w", package], env=env, check=True)
        if not actionlint_program().exists():
            aside.rename(CACHE / ACTIONLINT)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def lint_workflows(files: Sequence[Path]) -> str:
    """Return what actionlint says of workflows; "" where it finds nothing. It looks at scripts only by their inputs."""
    # Neither shellcheck nor pyflakes: whether they are installed here should make no difference.
    command = [actionlint_program(), "-no-color", "-shellcheck=", "-pyflakes=", *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def list_gitlab_jobs(repository: Path, **variables: str) -> list[str]:
    """Return the jobs that GitLab would run, by its schema and these variables; fails where the file breaks it."""
    given = [word for name, value in variables.items() for word in ("--variable", f"{name}={value}")]
    command = ["node", gitlab_program(), "--list-csv", *given]
    done = subprocess.run(
        command, cwd=repository, capture_output=True, text=True, timeout=120, env={**os.environ, "NO_COLOR": "1"}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "json schema validated" in done.stderr + done.stdout, done.stderr
    return [line.partition(";")[0] for line in done.stdout.splitlines() if ";" in line][1:]
