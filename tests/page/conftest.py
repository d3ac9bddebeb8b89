"""A browser for the tests of a module."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
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


@pytest.fixture(scope="module")
def shared_folder() -> Iterator[Path]:
    """Return a folder whose files the browser may read: pytest's own are for us alone, and it may be another user's."""
    with tempfile.TemporaryDirectory(prefix="monkey-report-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
