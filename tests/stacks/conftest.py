"""A desk for each test, and what Pulumi needs in the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import services

if TYPE_CHECKING:
    from tests.stacks.desk import Desk

ROOT = Path(__file__).parents[2]


@pytest.fixture
def pulumi(
    require: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[None]:
    """Have the real Pulumi on the PATH, and a home of its own for it."""
    require("pulumi")
    from tests.stacks import loose

    # What its library leaves open may be noticed before the end of the test.
    request.node.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
    monkeypatch.setenv("PATH", f"{services.pulumi_directory()}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "pulumi"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PAPER_LEDGER", str(tmp_path / "ledger"))
    (tmp_path / "papers").mkdir()
    yield
    loose.close()


@pytest.fixture
def desk(pulumi: None, tmp_path: Path) -> Iterator[Desk]:
    """Return a desk whose store is a directory; nothing of Pulumi may run when the test is over."""
    from tests.stacks.desk import Desk, leftovers

    yield Desk(tmp_path, str(tmp_path / "store"))
    assert not leftovers(tmp_path)
