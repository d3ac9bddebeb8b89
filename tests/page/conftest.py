"""A browser for all tests of a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser import open_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser(require: Callable[[str], str]) -> Iterator[Browser]:
    """Return a Chromium."""
    for name in ("chromium", "playwright", "axe-core"):
        require(name)
    with open_browser() as made:
        yield made
