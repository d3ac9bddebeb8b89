"""What is wrong on the command line is said of that, not of the spec that it amounts to."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.cli.commands.run import _as_said
from monkey.cli.main import run_guarded
from monkey.errors import Problem, SpecError
from monkey.plan.gone_sweeps import RUN_SOURCE
from tests.unit.apply.small_project import write_project


def test_no_internal_spec_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run_guarded(["run", "--gpus", "9999", "--", "true"]) == 125
    assert capfd.readouterr().err == "error: --gpus: expected at most 1024, found 9999\nhint: write at most 1024\n"


def test_a_hint_names_the_option() -> None:
    one = Problem(RUN_SOURCE, 1, 128, "expected expires, found none", "say when: expires: 12h", '{"_MONKEY_RUN": 1}')
    told = _as_said(SpecError([one]))
    assert (told.message, told.hint, told.exit_code) == (one.message, "say when: --expires 12h", 125)
    elsewhere = SpecError([Problem("monkey.yaml", 1, 1, "no")])
    assert _as_said(elsewhere) is elsewhere


def test_more_time_is_asked_for_as_extend_takes_it(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(["extend", "sweep", "--", "-3h"]) == 1
    said = capfd.readouterr().err
    assert "hint: say by how much later, like 6h, or a time" in said and "applied" not in said
