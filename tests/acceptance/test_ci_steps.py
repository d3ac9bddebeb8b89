"""The shell of CI's jobs, as `monkey init --ci` writes it, run by bash as a runner does."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monkey.spec.yaml import document
from tests.acceptance.shop import MONKEY, Shop

HOSTILE = "project: shop\nstore: 's3://b/x?endpoint=http://127.0.0.1:1'\nproviders: {lab: {type: ssh, hosts: [evil]}}\n"
TRUSTED = "project: shop\nstore: ssh://lab/store\nproviders: {lab: {type: ssh, hosts: [gpu1]}}\n"
SPEC = "command: echo {i}\nparameters: {i: [1, 2, 3]}\nprovider: lab\n"


class Runner:
    """A checkout of a pull request, and the files by which steps hand things on."""

    def __init__(self, shop: Shop, temp: Path) -> None:
        self.shop, self.temp = shop, temp
        temp.mkdir()
        names = {name: temp / name.lower() for name in ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
        for file in names.values():
            file.touch()
        self.env = {**shop.env, "CI": "true", "RUNNER_TEMP": str(temp), "GITHUB_BASE_REF": "main"}
        self.env |= {name: str(file) for name, file in names.items()}
        (temp / "bin").mkdir()
        (temp / "bin/monkey").write_text(f'#!/bin/sh\nexec {" ".join(MONKEY)} "$@"\n')
        (temp / "bin/monkey").chmod(0o755)
        self.env["PATH"] = f"{temp}/bin:{self.env['PATH']}"

    def git(self, *words: str) -> None:
        identity = ["-c", "user.name=n", "-c", "user.email=e@x"]
        subprocess.run(["git", *identity, *words], cwd=self.shop.root, env=self.shop.env, check=True, timeout=60)

    def step(self, job: str, name: str, code: int = 0, **given: str) -> str:
        """Run a step of a job with what its `env:` would give it, and return what it prints."""
        text = (self.shop.root / ".github/workflows/monkey.yml").read_text()
        steps: list[dict[str, Any]] = document.parse_document(text, "monkey.yml").data["jobs"][job]["steps"]
        [found] = [step for step in steps if step.get("name") == name]
        assert set(given) == set(found.get("env", {})), "a step is given what it says"
        handed = dict(line.split("=", 1) for line in (self.temp / "github_env").read_text().splitlines())
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", found["run"]]
        env = {**self.env, **handed, **given}
        done = subprocess.run(command, cwd=self.shop.root, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def runner(shop: Shop, tmp_path: Path, require: Callable[[str], str]) -> Runner:
    """Return a checkout whose base has CI, and whose branch would send credentials elsewhere."""
    require("git")
    (shop.root / "monkey.yaml").write_text(TRUSTED)
    shop.spec(SPEC)
    shop.run("init", "--ci", "github", "--branch", "main", "--package", "monkey-sweep")
    made = Runner(shop, tmp_path / "temp")
    made.git("init", "-q", "-b", "main")
    made.git("add", ".")
    made.git("commit", "-qm", "base")
    made.git("update-ref", "refs/remotes/origin/main", "HEAD")
    (shop.root / "monkey.yaml").write_text(HOSTILE)
    made.git("commit", "-qam", "pull request")
    return made


def test_a_fork_is_planned_by_the_base_s_settings_in_the_summary(runner: Runner) -> None:
    runner.step("fork", "The base's monkey.yaml")
    assert (runner.temp / "monkey.yaml").read_text() == TRUSTED
    printed = runner.step("fork", "Plan without store")
    summary = (runner.temp / "github_step_summary").read_text()
    assert "3 jobs" in summary and summary in printed
    assert "evil" not in summary


def test_a_base_without_settings_stops_the_plan_before_it_trusts_any(runner: Runner) -> None:
    runner.git("rm", "-q", "monkey.yaml")
    runner.git("commit", "-qm", "none")
    runner.git("update-ref", "refs/remotes/origin/main", "HEAD")
    (runner.shop.root / "monkey.yaml").write_text(HOSTILE)
    assert "the base branch has no monkey.yaml" in runner.step("plan", "The base's monkey.yaml", code=1)


def test_a_runner_signs_with_its_key_and_trusts_whom_it_is_told(runner: Runner, require: Callable[[str], str]) -> None:
    keygen = [require("ssh-keygen"), "-q", "-t", "ed25519", "-N", ""]
    for name in ("ci", "alice"):
        subprocess.run([*keygen, "-C", f"{name}@shop", "-f", runner.temp / name], check=True)
    keys = "".join((runner.temp / f"{name}.pub").read_text() for name in ("ci", "alice"))
    # Twice, as on a runner that stays.
    for _ in range(2):
        runner.step("apply", "Trust the signers", SIGNERS=f"{keys}\n")
    runner.step("apply", "Signing key", SIGNING_KEY=(runner.temp / "ci").read_text().rstrip("\n"))
    handed = dict(line.split("=", 1) for line in (runner.temp / "github_env").read_text().splitlines())
    key = Path(handed["MONKEY_SIGNING_KEY"])
    assert key.stat().st_mode & 0o777 == 0o600 and not key.is_relative_to(runner.shop.root)
    said = subprocess.check_output([*MONKEY, "trust"], cwd=runner.shop.root, env={**runner.env, **handed}, text=True)
    assert keys.split()[1] in said.splitlines()[1] and "alice@shop" in said
    assert "set the secret MONKEY_SIGNING_KEY" in runner.step("apply", "Signing key", code=1, SIGNING_KEY="")


def test_a_runner_s_own_key_and_hosts_stay_as_they_are(runner: Runner) -> None:
    own = Path(runner.env["HOME"], ".ssh")
    own.mkdir()
    (own / "id_ed25519").write_text("mine")
    runner.step("apply", "SSH", KEY="the job's", HOSTS="gpu1 ssh-ed25519 AAAA")
    assert [(path.name, path.read_text()) for path in own.iterdir()] == [("id_ed25519", "mine")]
    handed = dict(line.split("=", 1) for line in (runner.temp / "github_env").read_text().splitlines())
    config = handed["MONKEY_SSH_CONFIG"]
    said = subprocess.check_output(["ssh", "-G", "-F", config, "gpu1"], env=runner.env, text=True).splitlines()
    [key] = [Path(line.partition(" ")[2]) for line in said if line.startswith("identityfile ")]
    assert key.read_text() == "the job's\n" and key.stat().st_mode & 0o777 == 0o600
    [known] = [line.split()[1] for line in said if line.startswith("userknownhostsfile ")]
    assert Path(known).read_text() == "gpu1 ssh-ed25519 AAAA\n"


def test_what_pip_is_to_install_must_be_said(runner: Runner) -> None:
    runner.env["MONKEY_PACKAGE"] = ""
    assert "set the variable MONKEY_PACKAGE" in runner.step("plan", "Install monkey", code=1)
    assert not shutil.which("python", path=str(runner.temp / "venv/bin"))
