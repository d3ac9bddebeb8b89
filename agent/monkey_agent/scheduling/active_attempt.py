"""One attempt in hand: the claim it runs under, its processes, and what was asked of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from monkey.protocol.claims import HeldClaim
from monkey_agent.ports import Attempt, LiveAttempt, Slot, SlotGrant


@dataclass(eq=False)
class ActiveAttempt:
    """An attempt from its claim to its end entry."""

    attempt: Attempt
    #: The newest claim of it; None once another agent has it.
    held: HeldClaim | None
    #: The sweep under whose settings it runs now: another takes over where the first is cancelled.
    sweep: str
    #: None while it was claimed ahead, and waits for one.
    slot: Slot | None = None
    #: The one whose slot it is to have next, and the one that is to have its own.
    follows: ActiveAttempt | None = None
    follower: ActiveAttempt | None = None
    permit: tuple[int, HeldClaim] | None = None
    running: LiveAttempt | None = None
    #: While it is prepared, and waits for its slot; what it needs may take hours to be made.
    starting: asyncio.Future[None] | None = None
    #: Stopped by SIGSTOP until its claim was asked for again.
    frozen: bool = False
    #: Why it was asked to stop; empty when it was not.
    stopping: str = ""
    #: Wall clock when it got its slot, for people.
    began: float = 0.0
    #: When it was claimed, and from then on when it got its slot, on the agent's clock.
    since: float = 0.0
    #: Set when it has a slot, or follows another into one, or will never need one.
    called: asyncio.Event = field(default_factory=asyncio.Event)
    #: Held while its claim is being asked for again, handed over, or ended.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: When it was claimed, by the wall clock: a later claim may only continue it.
    claimed_at: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        """Note the time of its claim."""
        self.claimed_at = self.held.claim.at if self.held else 0.0

    @property
    def job(self) -> str:
        """The job's id."""
        return self.attempt.job

    @property
    def prepared(self) -> float:
        """Seconds from its claim to its slot, to the millisecond."""
        return round(max(0.0, self.began - self.claimed_at), 3)

    def follow(self, before: ActiveAttempt) -> None:
        """Begin when `before` has exited by itself, without anybody being asked."""
        self.follows, before.follower = before, self
        self.called.set()

    def wait_for_nobody(self) -> None:
        """Follow no attempt any more."""
        if self.follows:
            self.follows.follower = None
            self.follows = None

    def step_out(self) -> None:
        """Leave the line: its follower follows the one before it, if any."""
        before, after = self.follows, self.follower
        self.follows = self.follower = None
        if before:
            before.follower = after
        if after:
            after.follows = before

    def turn(self) -> SlotGrant | None:
        """Return when it begins, and with whose slot."""
        if self.slot:
            return SlotGrant(self.slot)
        before = self.follows
        if before is None or before.running is None:
            return None
        first = before
        while first.follows:
            first = first.follows
        return SlotGrant(first.slot, before.running) if first.slot else None

    def freeze(self) -> None:
        """Stop its processes where they are."""
        self.frozen = True
        if self.running:
            self.running.freeze()

    def thaw(self) -> None:
        """Let its processes continue."""
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

    def vitals(self) -> dict[str, Any]:
        """Return what heartbeats tell of it while it runs."""
        usage = self.running.usage() if self.running else None
        return {
            "job": self.job,
            "k": self.attempt.k,
            "number": self.attempt.number,
            "sweep": self.sweep,
            "began": self.began,
            "frozen": self.frozen,
            **({"metrics": self.running.progress()} if self.running else {}),
            **({"usage": usage} if usage else {}),
        }
