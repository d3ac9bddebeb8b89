"""A loop, and a machine with a runner on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.monkey_agent.body import Body


@pytest.fixture
def run() -> Iterator[Callable[[Any], Any]]:
    """Return a function that runs a coroutine to its end, always on the same event loop."""
    with asyncio.Runner() as runner:

        async def wrapped(awaitable: Any) -> Any:
            return await awaitable

        yield lambda awaitable: runner.run(wrapped(awaitable))


@pytest.fixture
def body(tmp_path: Path, run: Callable[[Any], Any]) -> Iterator[Body]:
    """Return a machine with a runner on a store in memory."""

    async def make() -> Body:
        return Body(tmp_path)

    body = run(make())
    yield body
    run(body.runner.close())
