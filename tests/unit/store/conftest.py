"""A directory store that was just begun."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from monkey.store.open import open_store
from monkey.store.store_port import Store
from tests.loops import Run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return where the store is, or will be."""
    return tmp_path / "store"


@pytest.fixture
def store(root: Path, run: Run) -> Iterator[Store]:
    """Return the store."""
    opened = run(open_store(str(root), begin=True))
    yield opened
    run(opened.close())
