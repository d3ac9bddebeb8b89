"""Where `monkey plan -o` may save: anywhere but among the project's code."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.cli.main import run_guarded


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project of one spec, below another directory; it is the working directory."""
    root = tmp_path / "outer/project"
    (root / "specs").mkdir(parents=True)
    (root / "specs/a.yaml").write_text("command: [echo, '{lr}']\nparameters: {lr: [1, 2]}\n")
    (root / "monkey.yaml").write_text("project: test\n")
    monkeypatch.chdir(root)
    return root


@pytest.mark.parametrize("written", ["../p.json", "specs/../../p.json", "{outer}/p.json"])
def test_outside_of_the_project_is_outside_however_it_is_written(root: Path, written: str) -> None:
    assert run_guarded(["plan", "-o", written.format(outer=root.parent)]) == 0
    assert (root.parent / "p.json").exists()


@pytest.mark.parametrize("written", ["p.json", "specs/p.json", "../project/p.json"])
def test_what_would_be_code_is_refused(root: Path, written: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(["plan", "-o", written]) == 1
    assert f"'{written}' would become part of the project's code" in capsys.readouterr().err
    assert not list(root.rglob("p.json"))
