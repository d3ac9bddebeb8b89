"""The repository's own action and workflows: as the linter wants them, and the action's shell run by bash."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from monkey.spec.yaml import document
from tests.acceptance.shop import MONKEY, Shop
from tests.ci_linters import lint_workflows

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def read(path: Path) -> dict[str, Any]:
    return dict(document.parse_document(path.read_text(), path.name).data)


@pytest.mark.needs("actionlint")
def test_the_linter_finds_nothing_in_our_own_workflows() -> None:
    assert lint_workflows(WORKFLOWS) == ""


def test_the_linter_looks_at_our_action_s_inputs(tmp_path: Path, require: Any) -> None:
    require("actionlint")
    require("git")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "action.yml").write_text((ROOT / "action.yml").read_text())
    file = tmp_path / ".github/workflows/ci.yml"
    file.parent.mkdir(parents=True)
    file.write_text((ROOT / ".github/workflows/ci.yml").read_text().replace("command: plan", "comand: plan"))
    assert 'input "comand" is not defined' in lint_workflows([file])


def test_nothing_of_others_is_taken_by_a_name_that_moves_and_no_input_is_code() -> None:
    steps = [step for path in WORKFLOWS for job in read(path)["jobs"].values() for step in job["steps"]]
    steps += read(ROOT / "action.yml")["runs"]["steps"]
    assert len(steps) > 5
    for step in steps:
        assert re.fullmatch(r"\./|[\w/-]+@[0-9a-f]{40}", step.get("uses", "./")), step
        assert "${{" not in step.get("run", ""), step


class Action:
    """The steps of the action, on a runner whose venv has the monkey of this clone."""

    def __init__(self, shop: Shop, temp: Path) -> None:
        self.shop, self.temp = shop, temp
        (temp / "monkey/bin").mkdir(parents=True)
        self._program("monkey", f'exec {" ".join(MONKEY)} "$@"')
        self._program("pip", f'printf "%s\\n" "$@" > {temp}/asked')
        self.steps = {step["name"]: step for step in read(ROOT / "action.yml")["runs"]["steps"]}

    def _program(self, name: str, text: str) -> None:
        (self.temp / "monkey/bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.temp / "monkey/bin" / name).chmod(0o755)

    def run(self, step: str, code: int = 0, **inputs: str) -> dict[str, str]:
        """Run a step as a runner does, and return its outputs."""
        assert set(inputs) == set(self.steps[step]["env"]), "a step is given what it says"
        files = {name: self.temp / name for name in ("GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        env = {
            **self.shop.env,
            **inputs,
            "RUNNER_TEMP": str(self.temp),
            **{name: str(at) for name, at in files.items()},
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", self.steps[step]["run"]]
        done = subprocess.run(command, cwd=self.shop.root, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == code, done.stdout + done.stderr
        return dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())


@pytest.fixture
def action(shop: Shop, tmp_path: Path) -> Action:
    """Return the action in a project of one sweep."""
    shop.spec(jobs=1)
    return Action(shop, tmp_path / "temp")


def test_changes_are_an_output_and_no_failure(action: Action) -> None:
    given = {"COMMAND": "plan", "ARGUMENTS": "--detailed-exitcode --markdown"}
    assert action.run("Run monkey", **given)["changes"] == "true"
    assert "sweep" in (action.temp / "GITHUB_STEP_SUMMARY").read_text()
    action.shop.run("apply")
    assert action.run("Run monkey", **given)["changes"] == "false"
    (action.shop.root / "specs/sweep.yaml").write_text("nonsense: [")
    assert action.run("Run monkey", code=1, **given)["changes"] == "false"


def test_arguments_are_words_and_no_code(action: Action) -> None:
    words = f"-- echo $(touch {action.temp}/pwned) `id` Digest: 0123456789abcdef ; false"
    # What a job prints is no output: of that, monkey writes its plan's own digest alone.
    assert action.run("Run monkey", COMMAND="run", ARGUMENTS=words) == {}
    assert "Digest: 0123456789abcdef" in (action.temp / "monkey.out").read_text()
    assert not (action.temp / "pwned").exists()


@pytest.mark.parametrize("arguments", ["", "--markdown", "--json"])
def test_the_digest_is_the_one_that_apply_expects(action: Action, arguments: str) -> None:
    digest = action.run("Run monkey", COMMAND="plan", ARGUMENTS=arguments)["digest"]
    assert action.run("Run monkey", COMMAND="apply", ARGUMENTS=f"--expect {digest}") == {"digest": digest}


@pytest.mark.parametrize(
    ("extras", "version", "asked"),
    [
        ("", "", "/at/commit"),
        ("aws,ssh", "", "/at/commit[aws,ssh]"),
        ("ssh", "git+https://x/monkey@abc", "monkey-sweep[ssh] @ git+https://x/monkey@abc"),
    ],
)
def test_what_pip_installs(action: Action, extras: str, version: str, asked: str) -> None:
    action.run("Install monkey", EXTRAS=extras, VERSION=version, ACTION="/at/commit")
    assert (action.temp / "asked").read_text().splitlines()[-1] == asked
    assert (action.temp / "GITHUB_PATH").read_text().strip() == f"{action.temp}/monkey/bin"
