"""Something that happens right between two steps of code under test, which is not changed for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Step:
    """Does something right before the n-th call of the system that Python announces: between a look and a use."""

    def __init__(self) -> None:
        self._left, self._do = -1, lambda: None
        sys.addaudithook(self._hear)

    def _hear(self, event: str, _: Any) -> None:
        if self._left >= 0 and (event == "open" or event.startswith(("os.", "shutil."))):
            self._left -= 1
            if self._left < 0:
                self._do()

    @contextmanager
    def before(self, n: int, do: Callable[[], None]) -> Iterator[None]:
        """Do it before the n-th call within the block."""
        self._left, self._do = n, do
        try:
            yield
        finally:
            self.came, self._left = self._left < 0, -1
