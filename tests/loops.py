"""What the fixture `run` gives to tests of asynchronous code."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Run(Protocol):
    """Runs something to its end and returns what came of it, always on the event loop of this one test."""

    def __call__(self, awaitable: Awaitable[T], /) -> T: ...
