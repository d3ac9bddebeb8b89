"""One job that the supervisor launched, and how it ended."""

from __future__ import annotations

import asyncio
import signal
from typing import Any, NamedTuple, Protocol


class ProcessExit(NamedTuple):
    """How a process ended."""

    #: "ended"; "failed": it could not be started; "refused": the deadline had passed; "lost": the supervisor died.
    kind: str
    #: Exit code, or minus the signal's number; an errno for "failed".
    code: int = 0
    #: Seconds that it ran, those that it was frozen not counted.
    seconds: float = 0.0
    #: Most memory that it ever held, as the kernel's ru_maxrss says it.
    peak: int = 0
    #: Processes of it that could not be killed.
    left: int = 0
    #: Where the register notes it; -1: it does not.
    at: int = -1
    #: Seconds of CPU time that its first process used, and what that waited for.
    cpu: float = 0.0
    #: Bytes that all its processes held when they took more than the job may; 0 if they did not.
    over: int = 0
    #: Processes that were left when its first one had ended, and were ended; and whether they worked.
    lingered: int = 0
    cut: bool = False
    #: Whether it was a shell that was asked to stop, and all that this ran then ended with an exit code.
    children_exited: bool = False
    #: For "failed": the file that is missing or cannot be run.
    file: str = ""


class Supervisor(Protocol):
    """The agent's end of the supervisor, as one process of it sees it."""

    def tell(self, *words: Any) -> None:
        """Send a message to the supervisor."""

    def judge(self, at: int, name: str, worth: int) -> None:
        """Note in the register what an exit is worth."""


class SupervisedProcess:
    """One launched job. Everything here takes effect in the order in which it is called."""

    def __init__(self, launcher: Supervisor, key: int, name: str, *, begun: bool) -> None:
        """Stand for the attempt `name`, which the supervisor knows as `key`; not `started`: it waits for its turn."""
        self._launcher, self.key, self.name, self.begun = launcher, key, name, begun
        self.ended: asyncio.Future[ProcessExit] = asyncio.get_running_loop().create_future()
        self._asked: asyncio.Future[float] | None = None

    def end(self, how: ProcessExit) -> None:
        """Take its end; the first report counts."""
        if not self.ended.done():
            self.ended.set_result(how)

    def begin(self) -> None:
        """It is its turn, whatever became of the one that it follows."""
        if not self.begun:
            self.begun = True
            self._launcher.tell("begin", self.key)

    def judge(self, worth: int) -> None:
        """Say what its exit is worth to a successor of ours: one of the register's words for that."""
        if self.ended.done() and self.ended.result().at >= 0:
            self._launcher.judge(self.ended.result().at, self.name, worth)

    def freeze(self) -> None:
        """Stop everything of it where it stands."""
        self._launcher.tell("freeze", self.key)

    async def halt(self) -> None:
        """Stop everything of it, and return when it stands still."""
        self.freeze()
        await self.active()  # may have been asked before
        await self.active()

    def thaw(self) -> None:
        """Let it continue, unless the deadline has passed."""
        self._launcher.tell("thaw", self.key)

    def terminate(self) -> None:
        """Send SIGTERM to everything of it."""
        self._launcher.tell("signal", self.key, int(signal.SIGTERM))

    async def active(self) -> float:
        """Return the seconds that it ran so far, or in all once it has ended; only the supervisor knows all freezes."""
        if self._asked is None or self._asked.done():
            self._asked = asyncio.get_running_loop().create_future()
            self._launcher.tell("active", self.key)
        either: list[asyncio.Future[Any]] = [self._asked, self.ended]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return self.ended.result().seconds if self.ended.done() else self._asked.result()

    def answer(self, active: float) -> None:
        """Take what the supervisor says to `active`."""
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(active)

    def kill(self) -> None:
        """Kill everything of it; its end is reported when nothing is left."""
        self._launcher.tell("kill", self.key)
