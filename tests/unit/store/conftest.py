"""A directory store that was just begun, and a loop to use it on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monkey.store.base import Store
from monkey.store.open import open_store


@pytest.fixture
def run() -> Iterator[Callable[[Any], Any]]:
    """Return a function that runs a coroutine to its end, always on the same event loop."""
    with asyncio.Runner() as runner:

        async def wrapped(awaitable: Any) -> Any:
            return await awaitable

        yield lambda awaitable: runner.run(wrapped(awaitable))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return where the store is, or will be."""
    return tmp_path / "store"


@pytest.fixture
def store(root: Path, run: Callable[[Any], Any]) -> Iterator[Store]:
    """Return the store."""
    opened = run(open_store(str(root), begin=True))
    yield opened
    run(opened.close())
