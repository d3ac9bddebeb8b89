"""The project in a sync's work tree, and what is said where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.apply.sync.sync_order import SyncOrder
from monkey.apply.sync.sync_project import load_sync_project
from monkey.errors import PlanError


def order(base: Path, path: str = "") -> SyncOrder:
    """Return the order of a sync whose work tree is `base`/tree, and whose store lies elsewhere."""
    return SyncOrder("/r.git", "main", 0.0, base, path, store=str(base.with_name("store")))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a work tree whose project lies in a directory."""
    made = tmp_path / "state" / "tree"
    (made / ".git").mkdir(parents=True)
    (made / "two" / "specs").mkdir(parents=True)
    (made / "two" / "monkey.yaml").write_text("project: two\n")
    (made / "two" / "specs" / "a.yml").touch()
    return made


def test_a_root_without_specs_names_the_option_and_a_directory_that_has_some(tree: Path) -> None:
    with pytest.raises(PlanError, match="expected a spec in specs of the repository, found none") as caught:
        load_sync_project(order(tree.parent), tree)
    assert caught.value.hint == "name the project's directory by --path, such as --path two; or write a spec there"
    assert load_sync_project(order(tree.parent, "two"), tree).name == "two"


def test_a_directory_without_specs_is_named(tree: Path) -> None:
    (tree / "two" / "specs" / "a.yml").unlink()
    with pytest.raises(PlanError, match="expected a spec in two/specs of the repository") as caught:
        load_sync_project(order(tree.parent, "two"), tree)
    assert caught.value.hint == "name the project's directory by --path; or write a spec there"
