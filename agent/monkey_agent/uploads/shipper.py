"""The shipper brings what running jobs write to the store: with each heartbeat, and in segments."""

from __future__ import annotations

import asyncio
import contextlib

from monkey.errors import StoreError
from monkey.protocol.claims import HeldClaim
from monkey.protocol.record.shipment import LOG, MAX_SEGMENT, SEAL_BYTES, Piece
from monkey.store.format import PACKED_SEGMENTS
from monkey_agent.ports import Runner
from monkey_agent.scheduling.active_attempt import ActiveAttempt
from monkey_agent.scheduling.agent_context import AgentContext
from monkey_agent.scheduling.attempts import AttemptListener


class Shipper(AttemptListener):
    """The writer of one agent's shipment."""

    def __init__(self, context: AgentContext, runner: Runner) -> None:
        """Ship what the attempts of `runner` write."""
        self._store, self._keys, self._create = context.store, context.keys, context.create
        self._agent, self._heart, self._troubles = context.identity.agent, context.heart, context.troubles
        self._spawn, self._errors, self._runner = context.spawn, context.errors, runner
        self._sealing, self._due = asyncio.Lock(), asyncio.Event()
        #: Attempt to the number of the first segment that may have pieces of it.
        self._first: dict[tuple[str, int], int] = {}
        self._removed = 0
        #: Attempt whose log has a limit to the segments behind its first half: number, and bytes of the log.
        self._last_halves: dict[tuple[str, int], list[tuple[int, int]]] = {}
        self._heart.collect = self.collect
        runner.ship = self.ship

    def collect(self) -> None:
        """Add what jobs wrote to the pieces that ride in the next heartbeat."""
        self._take(SEAL_BYTES)
        if self._heart.shipment.full:
            self._due.set()

    def _take(self, most: int) -> bool:
        """Take pieces, up to `most` bytes with those in hand; return whether all metrics were taken."""
        shipment, logs = self._heart.shipment, False
        with self._errors.alone("what running jobs wrote"):
            for piece in self._runner.take_unshipped(most - shipment.size) if shipment.size < most else ():
                logs = logs or piece.file == LOG  # they come last
                if piece.limit and self._store.layout < PACKED_SEGMENTS:
                    continue  # segments of the log would not tell a reader where it stands
                self._first.setdefault(piece[:2], shipment.sealed + 1)
                shipment.add(piece)
        return logs or shipment.size < most

    async def run(self) -> None:
        """Write segments when they are due, for ever."""
        while True:
            await self._due.wait()
            self._due.clear()
            try:
                with self._errors.alone("a segment of what running jobs wrote"):
                    await self._seal_full()
            except StoreError as exc:
                self._troubles.note(exc)  # the next heartbeat asks again

    async def _seal_full(self) -> None:
        self._take(SEAL_BYTES)
        while self._heart.shipment.full:
            await self._seal()
            self._take(SEAL_BYTES)

    async def ship(self) -> None:
        """Bring all metrics that jobs logged by now to the store, durably. Raises StoreError."""
        while not self._take(MAX_SEGMENT):
            await self._seal()
        self._heart.shipment.put_shared_first()
        await self._seal()
        if self._heart.shipment.open:  # a segment that the store had not taken came first
            await self._seal()

    async def _seal(self) -> None:
        async with self._sealing:
            self._take(MAX_SEGMENT)
            shipment = self._heart.shipment
            if shipment.open:
                i, data = shipment.pending(packed=self._store.layout >= PACKED_SEGMENTS)
                await self._create(self._store, self._keys.shipped_segment(self._agent, i), data)
                self._drop_middle(i, shipment.seal())

    def _drop_middle(self, i: int, sealed: list[Piece]) -> None:
        """Remove the oldest segments behind the first half of a log, as far as later ones have its last half."""
        if not sealed[0].limit:
            return
        segments = self._last_halves.setdefault(sealed[0][:2], [])
        segments.append((i, sum(len(piece.data) for piece in sealed)))
        while sum(size for _, size in segments[1:]) >= sealed[0].limit // 2:
            oldest, _ = segments.pop(0)
            self._spawn(self._remove(range(oldest, oldest + 1)))

    def attempt_over(self, work: ActiveAttempt, held: HeldClaim | None) -> None:
        """See `AttemptListener.attempt_over`: segments are removed once no attempt needs them."""
        if work.running is None or work.running.merged:
            self._first.pop((work.job, work.attempt.k), None)
            self._last_halves.pop((work.job, work.attempt.k), None)
            self._heart.shipment.drop(work.job, work.attempt.k)
        last = min(self._first.values(), default=self._heart.shipment.sealed + 1) - 1
        if last > self._removed:
            self._spawn(self._remove(range(self._removed + 1, last + 1)))
            self._removed = last

    async def _remove(self, segments: range) -> None:
        """Remove segments of which all attempts are over; what a store does not remove only takes room."""
        with contextlib.suppress(StoreError):
            for i in segments:
                await self._store.delete(self._keys.shipped_segment(self._agent, i))
