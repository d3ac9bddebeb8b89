"""A browser for the tests of a module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser import open_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser


# Not for longer: as long as it runs, Playwright's loop is the thread's, and no other test here could run one.
@pytest.fixture(scope="module")
def browser(require: Callable[[str], str]) -> Iterator[Browser]:
    """Return a Chromium."""
    for name in ("chromium", "playwright", "axe-core"):
        require(name)
    with open_browser() as made:
        yield made
