"""Which seeds: some at random, printed; more with pytest tests/fuzz --seeds 5000; one again with --seed 31."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest


@pytest.fixture
def show(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Print past pytest's capture."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def print_line(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\n{request.node.name}: {line}", flush=True)

    return print_line


@pytest.fixture
def first_seed(request: pytest.FixtureRequest, show: Callable[[str], None]) -> int:
    """Return the first seed of a test, and print it."""
    one = request.config.getoption("--seed")
    seed = random.SystemRandom().randrange(1_000_000) if one is None else int(one)
    show(f"from --seed {seed}")
    return seed


@pytest.fixture
def runs(request: pytest.FixtureRequest) -> int:
    """Return how many seeds were asked for; 0: as many as fit in CI."""
    return 1 if request.config.getoption("--seed") is not None else request.config.getoption("--seeds") or 0
