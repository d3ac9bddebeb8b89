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


@pytest.mark.parametrize("code", ["include: [a.py]", "root: src"])
def test_what_no_spec_has_as_code_is_saved(root: Path, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "src").mkdir()
    for name in ("a.py", "src/a.py"):
        (root / name).write_text("")
    with (root / "specs/a.yaml").open("a") as spec:
        spec.write(f"code: {{{code}}}\n")
    said = []
    for arguments in (["-o", "p.json"], []):
        assert run_guarded(["plan", *arguments]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == f"{said[1]}Saved. To do exactly this: monkey apply p.json\n", "it is not stale"


@pytest.mark.parametrize("written", ["p.json", "plan.json"])
def test_what_an_include_names_is_refused_whatever_its_name(root: Path, written: str) -> None:
    (root / "x.json").write_text("")
    with (root / "specs/a.yaml").open("a") as spec:
        spec.write("code: {include: ['*.json']}\n")
    assert run_guarded(["plan", "-o", written]) == 1
    assert not (root / written).exists()
