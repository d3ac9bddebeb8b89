"""The pipeline that `monkey init --ci gitlab` writes, run by gitlab-ci-local as GitLab's runner would."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.shop import MONKEY, Shop
from tests.acceptance.test_ci_steps import HOSTILE, SPEC, TRUSTED
from tests.ci_linters import gitlab_program

pytestmark = [pytest.mark.slow, pytest.mark.needs("gitlab-ci-local"), pytest.mark.needs("rsync")]


def make_wheel(directory: Path) -> Path:
    """Make a package that pip installs without any index, and that has no program: ours is on the PATH behind it."""
    wheel = directory / "stub-1-py3-none-any.whl"
    about = {
        "METADATA": "Metadata-Version: 2.1\nName: stub\nVersion: 1\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "stub-1.dist-info/METADATA,,\nstub-1.dist-info/WHEEL,,\nstub-1.dist-info/RECORD,,\n",
    }
    with zipfile.ZipFile(wheel, "w") as file:
        for name, text in about.items():
            file.writestr(f"stub-1.dist-info/{name}", text)
    return wheel


@pytest.fixture
def pipeline(
    shop: Shop, tmp_path: Path, require: Callable[[str], str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs a job on a merge request that would send credentials elsewhere."""
    identity = ["-c", "user.name=n", "-c", "user.email=e@x"]

    def git(*words: str) -> None:
        subprocess.run(
            [require("git"), *identity, *words], cwd=shop.root, env=shop.env, check=True, capture_output=True
        )

    (shop.root / "monkey.yaml").write_text(TRUSTED)
    shop.spec(SPEC)
    git("init", "-q", "-b", "main")
    git("init", "-q", "--bare", str(tmp_path / "lab.git"))
    git("remote", "add", "origin", str(tmp_path / "lab.git"))
    shop.run("init", "--ci", "gitlab", "--branch", "main", "--package", "monkey-sweep")
    git("add", ".")
    git("commit", "-qm", "base")
    git("push", "-q", "origin", "main")
    git("checkout", "-qb", "change")
    (shop.root / "monkey.yaml").write_text(HOSTILE)
    git("commit", "-qam", "change")
    git("init", "-q", "--bare", str(tmp_path / "fork.git"))
    git("remote", "set-url", "origin", str(tmp_path / "fork.git"))
    git("rm", "-q", "monkey.yaml")
    git("commit", "-qm", "the fork's own main, from before there was CI")
    git("push", "-q", "origin", "HEAD:main")
    git("reset", "-q", "--hard", "HEAD~1")
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    (bin_directory / "monkey").write_text(f'#!/bin/sh\nexec {" ".join(MONKEY)} "$@"\n')
    (bin_directory / "monkey").chmod(0o755)
    env = {**shop.env, "PATH": f"{bin_directory}:{os.environ['PATH']}", "PIP_NO_INDEX": "1", "CI": "true"}

    def run(job: str, **variables: str) -> subprocess.CompletedProcess[str]:
        said = {"MONKEY_PACKAGE": str(make_wheel(tmp_path)), "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", **variables}
        said |= {"CI_PIPELINE_SOURCE": "merge_request_event", "CI_MERGE_REQUEST_PROJECT_ID": "7"}
        # The runner's clone is of the fork, whose own branch of that name is another.
        said |= {"CI_PROJECT_ID": "8", "CI_MERGE_REQUEST_PROJECT_URL": str(tmp_path / "lab")}
        given = [word for name, value in said.items() for word in ("--variable", f"{name}={value}")]
        command = [shutil.which("node") or "node", str(gitlab_program()), "--force-shell-executor", *given, job]
        return subprocess.run(command, cwd=shop.root, env=env, capture_output=True, text=True, timeout=300)

    return run


def test_a_fork_is_planned_in_the_log_by_the_base_s_settings(
    pipeline: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = pipeline("fork", CI_MERGE_REQUEST_SOURCE_PROJECT_ID="8")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 jobs" in done.stdout and "lab" in done.stdout
    assert "127.0.0.1" not in done.stdout + done.stderr and "evil" not in done.stdout
