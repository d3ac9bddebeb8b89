"""`monkey validate`: a word where all is well, and every mistake where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.cli.main import run_guarded

SPEC = "command: [python3, train.py, '{lr}']\nparameters: {lr: [1, 2, 3]}\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project of one spec, which is the working directory; its store cannot be reached."""
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "a.yaml").write_text(SPEC)
    (tmp_path / "train.py").write_text("")
    (tmp_path / "monkey.yaml").write_text("project: test\nstore: s3://bucket/x?endpoint=http://127.0.0.1:9\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_valid_specs_are_counted(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(["validate"]) == 0
    assert capsys.readouterr().out == "1 spec is valid: 3 jobs\n"
    (root / "specs" / "b.yaml").write_text(SPEC.replace("3]", "3, 4]"))
    assert run_guarded(["validate"]) == 0
    assert capsys.readouterr().out == "2 specs are valid: 7 jobs\n"
    assert run_guarded(["validate", "specs/b.yaml"]) == 0
    assert capsys.readouterr().out == "1 spec is valid: 4 jobs\n"
    assert sorted(path.name for path in root.iterdir()) == ["monkey.yaml", "specs", "train.py"], "nothing is written"


def test_mistakes_are_told_with_their_lines(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "specs" / "a.yaml").write_text(SPEC + "provider: moon\n")
    assert run_guarded(["validate"]) == 1
    assert "specs/a.yaml:3:11" in capsys.readouterr().err
