"""Claims in hand: taking, asking again, ending. The rules of design section 5; nothing here knows what a job is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from monkey.errors import StoreError
from monkey.protocol.clock import Clock
from monkey.protocol.entries import Claim, ClaimEnd, EndEntry, TornEntry
from monkey.protocol.entry_log import Create, EntryLog
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.liveness.observer import HeartbeatObserver
from monkey.store.store_port import Store

#: Seconds before a create is tried again that the store did not answer.
RETRY_SECONDS = 3.0


@dataclass(slots=True)
class HeldClaim:
    """A claim in hand: entry `k` of `log`, made in this epoch of the heart."""

    log: EntryLog
    k: int
    claim: Claim
    epoch: int

    @property
    def spot(self) -> tuple[str, int]:
        """How heartbeats list it."""
        return self.log.base, self.k


class Claims:
    """An agent's way to claim logs: jobs and permits alike."""

    def __init__(
        self, store: Store, create: Create, heart: HeartbeatWriter, observer: HeartbeatObserver, clock: Clock
    ) -> None:
        """Claim for the agent `observer.me`, whose heart beats in `heart`."""
        self._store, self._create = store, create
        self._heart, self._observer, self._clock = heart, observer, clock
        self._nonce = 0
        #: Claim (base of its log, position) to since when its owner was silent, when `is_suspect` was asked first.
        self._suspects: dict[tuple[str, int], float] = {}

    def free(self, log: EntryLog) -> bool:
        """May a claim be appended after the last entry known, as far as the last look tells?"""
        tail = log.tail
        if not isinstance(tail, Claim | TornEntry):
            return True
        if tail.agent == self._observer.me:
            return (log.base, log.head) not in self._heart.held
        return self._observer.lost(tail, log.base, log.head)

    def is_abandoned(self, log: EntryLog) -> bool:
        """Does the log end with a claim of another agent, which is gone as far as the last look tells?"""
        tail = log.tail
        return isinstance(tail, Claim | TornEntry) and tail.agent != self._observer.me and self._observer.gone(tail)

    def is_suspect(self, log: EntryLog) -> bool:
        """Does it end with one of an agent that may be gone: it was not heard of since this was asked first?"""
        tail = log.tail
        if not isinstance(tail, Claim | TornEntry) or tail.agent == self._observer.me or self._observer.gone(tail):
            return False
        since = self._observer.silent_since(tail.agent)
        return since <= self._suspects.setdefault((log.base, log.head), since)

    async def take(
        self, log: EntryLog, sweep: str, checkpoint: int = 0, lost_seconds: float = 0.0, user: str = ""
    ) -> HeldClaim | None:
        """Append a claim, which tells of the newest `checkpoint`, and of the seconds that a lost attempt ran.

        `user`: who applied the revision.

        None: another was first, its owner lives after all, or the store does not answer.
        """
        tail = log.tail
        epoch = self._heart.epoch
        spot = (log.base, log.head + 1)
        if not self._heart.may_work(epoch) or spot in self._heart.held:
            return None  # out of touch; or another task of this agent is claiming the same
        claim = self._make(sweep, continues=False, checkpoint=checkpoint, lost_seconds=lost_seconds, user=user)
        self._heart.held.add(spot)
        try:
            if isinstance(tail, Claim | TornEntry) and not await self._gone(tail, log):
                won = False
            else:
                won = await log.append(self._store, self._create, spot[1], claim, durable=False)
        except StoreError as exc:
            self._heart.on_trouble(exc)
            won = False
        except asyncio.CancelledError:
            self._heart.held.discard(spot)  # it may be there: the next heartbeat frees it
            raise
        if won and self._heart.may_work(epoch):
            return HeldClaim(log, spot[1], claim, epoch)
        self._heart.held.discard(spot)
        return None

    async def again(self, held: HeldClaim, sweep: str) -> HeldClaim | None:
        """Claim once more what is in hand (after a gap in the heartbeats, or for another sweep).

        Asks until the store answers. None: another has it, or it must be assumed; it is no longer held then.
        """
        while True:
            epoch, spot = self._heart.epoch, (held.log.base, held.k + 1)
            claim = self._make(sweep, continues=True, user=held.claim.user)
            self._heart.held.add(spot)
            won = await self._insist(held.log, spot[1], claim)
            self.drop(held)
            held = HeldClaim(held.log, spot[1], claim, epoch)
            if not won:
                self.drop(held)
                return None
            if self._heart.may_work(epoch):
                return held
            while not self._heart.may_work(self._heart.epoch):
                await self._clock.sleep(RETRY_SECONDS)

    async def end(self, held: HeldClaim, end: EndEntry) -> bool:
        """Append the end of a claim in hand; asks until the store answers. False: another has taken it over."""
        try:
            return await self._insist(held.log, held.k + 1, end)
        finally:
            self.drop(held)

    async def release(self, held: HeldClaim, reason: str) -> bool:
        """End a claim without a verdict, so that others continue at once."""
        return await self.end(held, self.ending(held, ClaimEnd.RELEASED, reason))

    def ending(self, held: HeldClaim, outcome: ClaimEnd, reason: str) -> EndEntry:
        """Make the end entry of a claim in hand."""
        return EndEntry(
            outcome, held.claim.agent, held.claim.nonce, held.claim.sweep, reason=reason, at=self._clock.wall()
        )

    def drop(self, held: HeldClaim) -> None:
        """Hold the claim no longer: the next heartbeat frees it for others."""
        self._heart.held.discard(held.spot)

    def _make(self, sweep: str, *, continues: bool, **more: Any) -> Claim:
        self._nonce += 1
        at, lease = round(self._clock.wall(), 3), self._heart.lease
        return Claim(self._observer.me, self._nonce, self._heart.seq, sweep, continues, at=at, lease=lease, **more)

    async def _gone(self, tail: Claim | TornEntry, log: EntryLog) -> bool:
        return tail.agent == self._observer.me or await self._observer.confirm(tail, log.base, log.head)

    async def _insist(self, log: EntryLog, k: int, entry: Claim | EndEntry) -> bool:
        while True:
            try:
                return await log.append(self._store, self._create, k, entry)
            except StoreError as exc:
                self._heart.on_trouble(exc)
                await self._clock.sleep(RETRY_SECONDS)
