"""Unexpected exceptions: each ends only what raised it, and goes to the agent's log."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from monkey.errors import FleetError, StoreError
from monkey.fleet.fleet_port import keep_silent

#: Characters of an exception that people are told, and lines that are remembered.
WIDTH, _MOST = 200, 1000


class UnexpectedErrors:
    """Tells each of them once, however often it happens."""

    def __init__(self, say: Callable[[str], None] = keep_silent) -> None:
        """`say` writes a line to the agent's log."""
        self.say = say
        self._said: set[str] = set()

    def once(self, line: str, more: str = "") -> None:
        """Write a line to the agent's log, and what follows it, unless it is there."""
        if line not in self._said:
            if len(self._said) >= _MOST:
                self._said.clear()
            self._said.add(line)
            self.say(line + more)

    def tell(self, where: str, exc: Exception) -> str:
        """Write the traceback to the agent's log; returns what to tell people."""
        words = f"{type(exc).__name__}: {exc}"[:WIDTH]
        self.once(f"{where}: {words}", "\n" + "".join(traceback.format_exception(exc)).rstrip())
        return f"{words} (this is a bug in monkey: the agent's log has the traceback)"

    @contextmanager
    def alone(self, where: str) -> Iterator[None]:
        """End what is done here by an exception, and nothing else.

        StoreError continues: it is expected everywhere. So does FleetError: where no supervisor can be started, nothing
        can.
        """
        try:
            yield
        except (StoreError, FleetError):
            raise
        except Exception as exc:
            self.tell(where, exc)
