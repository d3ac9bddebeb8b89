"""A plugin of pytest: notes which lines of the product each test runs, with its fixtures, in this process."""

from __future__ import annotations

import os
from collections.abc import Generator

import coverage
import pytest

#: Variables that say where the notes go, and which directories' files they are of, separated as paths are.
DATA, SOURCE = "MUTANTS_DATA", "MUTANTS_SOURCE"
_measured: list[coverage.Coverage] = []


def pytest_configure() -> None:
    source = os.environ[SOURCE].split(os.pathsep)
    made = coverage.Coverage(os.environ[DATA], data_suffix=True, source=source, config_file=False, messages=False)
    made.start()
    _measured.append(made)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _measured[0].switch_context(item.nodeid)
    outcome = yield
    _measured[0].switch_context("")
    return outcome


def pytest_unconfigure() -> None:
    for made in _measured:
        made.stop()
        made.save()
