"""What a test leaves open fails that test, not the one that happens to run when it is collected."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect what the test left behind: who did not close a file or a connection is told so, and pytest hears it.

    What lives on is left out of all later collections. Each of them then takes no longer than the test's own objects
    need, and the tests as a whole take less time than with Python's own collections.
    """
    yield
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let pytest's last collection look at all that is left."""
    gc.unfreeze()
