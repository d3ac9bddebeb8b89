"""What the specs of a project want."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.apply.world.desired_state import desire_specs, list_spec_files, read_specs
from monkey.errors import SpecError
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
