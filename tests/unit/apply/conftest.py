"""A project to apply."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.apply.small_project import write_project


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the root of a project of one spec."""
    write_project(tmp_path)
    return tmp_path
