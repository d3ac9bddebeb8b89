"""What the specs of a project want."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from monkey.apply.world.desired_state import desire_specs, list_spec_files, read_specs
from monkey.errors import SpecError
from monkey.spec.project.forge_settings import ForgeSettings
from monkey.spec.project.notify_channel import NotifyChannel
from monkey.spec.project.project import load_project


@pytest.mark.parametrize("include", ["", "code: {include: ['**/*']}\n"])
@pytest.mark.parametrize("store", ["st", "data/store", "{root}/st"])
def test_a_store_in_the_project_is_no_code(tmp_path: Path, store: str, include: str) -> None:
    place = store.format(root=tmp_path)
    (tmp_path / "monkey.yaml").write_text(f"project: test\nstore: {place}\n")
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "sweep.yaml").write_text(f"command: python3 train.py\noutputs: []\n{include}")
    (tmp_path / "train.py").write_text("print(1)\n")

    def code() -> str:
        project = load_project(tmp_path)
        [spec] = desire_specs(project, read_specs(project, list_spec_files(project)))
        return spec.desired.recipe.code

    before = code()
    (tmp_path / place / "projects").mkdir(parents=True)
    (tmp_path / place / "projects" / "object").write_text("x")
    assert code() == before
    (tmp_path / "train.py").write_text("print(2)\n")
    assert code() != before


def test_a_spec_that_is_a_broken_link_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "monkey.yaml").write_text("project: test\n")
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "sweep.yaml").symlink_to("nowhere.yaml")
    project = load_project(tmp_path)
    with pytest.raises(SpecError, match=r"specs/nowhere\.yaml:1:1: there is no such file"):
        read_specs(project, list_spec_files(project))


def channels(root: Path, text: str) -> list[NotifyChannel]:
    """Return the channels of a sweep in a project that says so."""
    (root / "monkey.yaml").write_text(f"project: test\n{text}\n")
    (root / "specs").mkdir(exist_ok=True)
    (root / "specs" / "sweep.yaml").write_text("command: python3 train.py\noutputs: []\n")
    (root / "train.py").write_text("print(1)\n")
    project = load_project(root)
    [spec] = desire_specs(project, read_specs(project, list_spec_files(project)))
    return spec.desired.settings.notify


def test_machines_are_told_where_the_forge_is(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    remote = "https://me:hunter2@git.lab/lab/sweeps.git"
    subprocess.run(["git", "-C", tmp_path, "remote", "add", "origin", remote], check=True)
    slack, forge = channels(tmp_path, "forge: {type: gitea}\nnotify: [{slack: S}, {forge: T, on: failed}]")
    at = ForgeSettings("gitea", "https://git.lab/api/v1", "lab/sweeps")
    assert forge == NotifyChannel("forge", "T", ("failed",), forge=at) and slack == NotifyChannel("slack", "S")
    for text, column in (("notify: {forge: T}", 17), ("notify: [{slack: S}, {forge: T}]", 30)):
        with pytest.raises(SpecError) as caught:
            channels(tmp_path, text)
        [found] = caught.value.problems
        assert (found.file, found.line, found.column) == ("monkey.yaml", 2, column)
        assert "its remote is at git.lab, which may be any" in found.message and "forge: {type:" in (found.hint or "")


def test_a_name_of_our_own_columns_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "monkey.yaml").write_text("project: test\n")
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "sweep.yaml").write_text(
        "command: python3 train.py\nmetric:\n  name: lr\n"
        "parameters:\n  lr: 1\n  n: 2\n  seconds:\n    values: [5, 30]\n"
    )
    (tmp_path / "train.py").write_text("print(1)\n")
    project = load_project(tmp_path)
    [spec] = desire_specs(project, read_specs(project, list_spec_files(project)))
    assert spec.desired.warnings == (
        "specs/sweep.yaml:7: parameter `seconds` is column `parameter.seconds` in results",
        "specs/sweep.yaml:3: metric `lr` is column `metric.lr` in results",
    )
