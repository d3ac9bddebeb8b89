"""What tests of `monkey init --ci` share."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ci_clone import Clone


@pytest.fixture
def clone(tmp_path: Path, require: Callable[[str], str]) -> Clone:
    """Return an empty clone."""
    require("git")
    (tmp_path / "anywhere").mkdir()
    return Clone(tmp_path / "anywhere")
