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


def test_names_that_two_specs_have_are_told_beside_other_mistakes(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "specs" / "b.yaml").write_text("name: a\n" + SPEC)
    (root / "specs" / "c.yaml").write_text(SPEC + "provider: moon\n")
    (root / "specs" / "d.yaml").write_text("provider: moon\nname: a\n" + SPEC)
    assert run_guarded(["validate"]) == 1
    said = capsys.readouterr().err
    assert "specs/b.yaml:1:7: two specs are named 'a': specs/a.yaml and specs/b.yaml\n" in said
    assert "specs/d.yaml:2:7: two specs are named 'a': specs/a.yaml and specs/d.yaml\n" in said
    assert "specs/c.yaml:3:11: " in said and "specs/d.yaml:1:11: " in said
    assert "hint: give one of them another `name:`" in said


def test_a_key_that_is_written_wrongly_is_one_mistake(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "specs" / "a.yaml").write_text("name: a\n" + SPEC.replace("command", "comand"))
    assert run_guarded(["validate"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: specs/a.yaml:2:1: unknown key 'comand'\n") and "is missing" not in said
    assert "hint: did you mean 'command'?" in said
