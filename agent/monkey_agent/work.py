"""One attempt in hand: the claim it runs under, its processes, and what was asked of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from monkey.protocol.claims import Held
from monkey.protocol.entries import End
from monkey_agent.ports import Attempt, Running, Seat


@dataclass(eq=False)
class Work:
    """An attempt from its claim to its end entry."""

    attempt: Attempt
    #: The newest claim of it; None once another agent has it.
    held: Held | None
    #: The sweep under whose settings it runs now: another takes over where the first is cancelled.
    sweep: str
    #: None while it was claimed ahead, and waits for one.
    seat: Seat | None = None
    permit: tuple[int, Held] | None = None
    running: Running | None = None
    #: While it is prepared, and waits for its seat; what it needs may take hours to be made.
    starting: asyncio.Future[None] | None = None
    #: Stopped by SIGSTOP until its claim was asked for again.
    frozen: bool = False
    #: Why it was asked to stop; empty when it was not.
    stopping: str = ""
    #: Wall clock when it got its seat, for people.
    began: float = 0.0
    #: When it was claimed, and from then on when it got its seat, on the agent's clock.
    since: float = 0.0
    #: Position of the claim whose attempt left its outputs, where that is an earlier one.
    out: int = 0
    #: How it ended, as the log is told.
    end: End | None = None
    #: Set when it has a seat, or will never need one.
    called: asyncio.Event = field(default_factory=asyncio.Event)
    #: Held while its claim is being asked for again, handed over, or ended.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def job(self) -> str:
        """The job's id."""
        return self.attempt.job

    def freeze(self) -> None:
        """Stop its processes where they are."""
        self.frozen = True
        if self.running:
            self.running.freeze()

    def thaw(self) -> None:
        """Let its processes go on."""
        self.frozen = False
        if self.running:
            self.running.thaw()

    async def stop(self, reason: str) -> None:
        """Ask its processes to end, then make them; one that has none yet is given up as it stands."""
        if not self.stopping:
            self.stopping = reason
            self.called.set()
            if self.running:
                await self.running.stop(reason)
            elif self.starting:
                self.starting.cancel()

    def epochs(self) -> set[int]:
        """In which epochs of the heart it was claimed: the job, and the permit it runs under."""
        holds = [self.held, self.permit[1] if self.permit else None]
        return {held.epoch for held in holds if held}
