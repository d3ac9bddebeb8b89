from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import monkey


def test_params_of_a_job_go_over_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONKEY_PARAMS", '{"lr": 0.1, "optimizer": {"lr": 2}}')
    defaults = {"lr": 1.0, "seed": 3, "optimizer": {"name": "sgd"}}
    assert monkey.params(**defaults) == {"lr": 0.1, "seed": 3, "optimizer": {"name": "sgd", "lr": 2}}


def test_params_outside_of_a_job_are_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MONKEY_PARAMS", raising=False)
    assert monkey.params(lr=1.0) == {"lr": 1.0}


def test_directories_are_the_jobs_and_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MONKEY_OUTPUT_DIR", str(tmp_path / "a" / "out"))
    monkeypatch.setenv("MONKEY_CHECKPOINT_DIR", str(tmp_path / "ck"))
    assert (monkey.output_dir(), monkey.checkpoint_dir()) == (tmp_path / "a" / "out", tmp_path / "ck")
    assert monkey.output_dir().is_dir() and monkey.checkpoint_dir().is_dir()


def test_directories_outside_of_a_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MONKEY_OUTPUT_DIR", raising=False)
    monkeypatch.delenv("MONKEY_CHECKPOINT_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    assert (monkey.output_dir().resolve(), monkey.checkpoint_dir().resolve()) == (
        tmp_path / "outputs",
        tmp_path / "checkpoints",
    )


def test_public_names_exist_and_others_do_not() -> None:
    for name in monkey.__all__:
        assert getattr(monkey, name)
    with pytest.raises(AttributeError, match="nothing_such"):
        monkey.nothing_such  # noqa: B018


def test_importing_monkey_imports_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import monkey; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['monkey']\n"
