"""A project for each test; nothing of it outlives the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop


@pytest.fixture
def make_shop(tmp_path: Path) -> Iterator[Callable[..., Shop]]:
    """Return a function that makes a project below a directory of its own."""
    made: list[Shop] = []

    def make(name: str = "shop", **options: object) -> Shop:
        made.append(Shop(tmp_path / name, **options))  # type: ignore[arg-type]  # whatever Shop takes
        return made[-1]

    yield make
    for shop in made:
        shop.kill_all()


@pytest.fixture
def shop(make_shop: Callable[..., Shop]) -> Shop:
    """Return a project."""
    return make_shop()
