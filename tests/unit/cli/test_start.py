"""How little a command does before it answers: what `monkey plan` loads, compiles and starts, without a clock."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from monkey.spec.sweep.models import Spec

SPEC = "command: python train.py --lr {lr} --seed {seed}\nparameters:\n  lr: [0.1, 0.2, 0.3]\n  seed: [1, 2]\n"
#: `monkey`, then what its process has loaded: its modules, and the longest pattern that a module of ours keeps.
LOADED = """if True:
    import json, re, sys
    from monkey.cli.main import run_guarded
    code = run_guarded(sys.argv[1:])
    ours = [module for name, module in sys.modules.items() if name.split(".")[0] == "monkey"]
    kept = [value for module in ours for value in vars(module).values() if isinstance(value, re.Pattern)]
    print(json.dumps([sorted(sys.modules), max(len(value.pattern) for value in kept)]))
    sys.exit(code)"""
#: What the plan of a small spec has no use for: the forge's comment, orders to sweeps, registries of images.
UNUSED = {
    *("cryptography", "email.parser", "getpass", "html", "http.client", "rich", "urllib.request"),
    *("monkey.apply.orders", "monkey.apply.previews", "monkey.cli.review.pull_review", "monkey.plan.text.markdown"),
    *("monkey.transfer.images.registry_client", "monkey.transfer.images.registry_login"),
}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one small spec, of a user who has signed nothing yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    home = tmp_path / "small"
    (home / "specs").mkdir(parents=True)
    (home / "monkey.yaml").write_text("project: bench\n")
    (home / "train.py").write_text("print('train')\n")
    (home / "specs" / "small.yaml").write_text(SPEC)
    return home


def load_plan(home: Path) -> tuple[set[str], int]:
    """Return the modules that a plan loads, and the characters of the longest pattern."""
    done = subprocess.run([sys.executable, "-c", LOADED, "plan"], cwd=home, capture_output=True, text=True, timeout=120)
    assert "Plan: 6 new" in done.stdout, done.stdout + done.stderr
    modules, longest = json.loads(done.stdout.splitlines()[-1])
    return set(modules), longest


def test_a_plan_loads_nothing_that_it_does_not_use(small: Path) -> None:
    modules, _ = load_plan(small)
    assert not modules & UNUSED
    # 121 in the first release. Each takes a third of a millisecond.
    assert len([name for name in modules if name.startswith("monkey.")]) <= 290


def test_no_module_compiles_a_long_pattern_when_it_is_loaded(small: Path) -> None:
    assert load_plan(small)[1] <= 1000


def test_pydantic_builds_no_schema_of_what_functions_read() -> None:
    assert "StopRule" not in repr(Spec.__pydantic_core_schema__)


def test_a_plan_in_a_repository_starts_git_four_times(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = shutil.which("git")
    subprocess.run(["git", "init", "-q"], cwd=small, check=True, timeout=60)
    programs = small.parent / "programs"
    programs.mkdir()
    (programs / "git").write_text(f'#!/bin/sh\necho "$*" >> {small.parent}/started\nexec {git} "$@"\n')
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    load_plan(small)
    assert len((small.parent / "started").read_text().splitlines()) <= 4
