"""Permits: at most `max_concurrent_jobs` of a sweep run at once, over all machines. Each permit has its own log."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from monkey.errors import StoreError
from monkey.protocol.claims import Claims, HeldClaim
from monkey.protocol.entries import Claim
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.layout import Keys
from monkey.protocol.liveness.observer import HeartbeatObserver
from monkey.protocol.sweeps.sweep_state import SweepState
from monkey.store.store_port import Store

#: Number of permits that one search looks at: of thousands of permits, free ones are found soon enough.
LOOKS = 32


@dataclass
class _Pool:
    logs: dict[int, EntryLog] = field(default_factory=dict)
    #: Permits in hand under which no job runs now: (number, claim).
    idle: list[tuple[int, HeldClaim]] = field(default_factory=list)


class Permits:
    """An agent's permits. A slot keeps its permit from one job of a sweep to the next."""

    def __init__(
        self,
        store: Store,
        keys: Keys,
        claims: Claims,
        heart: HeartbeatWriter,
        observer: HeartbeatObserver,
        rng: random.Random,
    ) -> None:
        """Take permits through `claims`."""
        self._store, self._keys, self._claims = store, keys, claims
        self._heart, self._observer, self._random = heart, observer, rng
        self._pools: dict[str, _Pool] = {}

    async def take(self, sweep: SweepState) -> tuple[int, HeldClaim] | None:
        """Return a permit (number, claim) of a sweep with a limit; None if none is free, or the store is silent."""
        assert sweep.revision is not None
        cap = sweep.revision.settings.max_concurrent_jobs
        assert cap is not None, "only sweeps with max_concurrent_jobs have permits"
        pool = self._pools.setdefault(sweep.name, _Pool())
        while pool.idle:
            i, held = pool.idle.pop()
            if i < cap and self._heart.may_work(held.epoch):
                return i, held
            self._claims.drop(held)
        async for i, log in self._free(sweep.name, cap, pool):
            held_now = await self._claims.take(log, sweep.name)
            if held_now:
                return i, held_now
        return None

    async def any_free(self, sweep: SweepState) -> bool:
        """Return whether `take` would find a permit now; take none: a job that waits for a slot must not hold one."""
        assert sweep.revision is not None
        cap = sweep.revision.settings.max_concurrent_jobs
        assert cap is not None, "only sweeps with max_concurrent_jobs have permits"
        pool = self._pools.setdefault(sweep.name, _Pool())
        if any(i < cap and self._heart.may_work(held.epoch) for i, held in pool.idle):
            return True
        async for _ in self._free(sweep.name, cap, pool):
            return True
        return False

    async def _free(self, sweep: str, cap: int, pool: _Pool) -> AsyncIterator[tuple[int, EntryLog]]:
        """Yield the numbers of permits that seem free, with their logs."""
        for i in self._random.sample(range(cap), min(cap, LOOKS)):
            log = pool.logs.setdefault(i, EntryLog(self._keys.permit_log(sweep, i)))
            if self._known_busy(log):
                continue
            with contextlib.suppress(StoreError):
                await log.jump(self._store)
                if self._claims.free(log):
                    yield i, log

    def _known_busy(self, log: EntryLog) -> bool:
        """Return whether the newest heartbeat of the permit's agent still lists it: then the store is not asked."""
        tail, spot = log.tail, (log.base, log.head)
        if not isinstance(tail, Claim):
            return False
        if tail.agent == self._observer.me:
            return spot in self._heart.held
        beat = self._observer.beats.get(tail.agent)
        return beat is not None and not beat.left and spot in beat.held and not self._claims.free(log)

    def give(self, sweep: str, permit: tuple[int, HeldClaim]) -> None:
        """Keep the permit for the sweep's next job."""
        self._pools.setdefault(sweep, _Pool()).idle.append(permit)

    async def release(self, sweep: str) -> None:
        """Release the sweep's permits that no job here uses, so that other agents can take them."""
        pool = self._pools.get(sweep)
        while pool and pool.idle:
            _, held = pool.idle.pop()
            if self._heart.may_work(held.epoch):
                await self._claims.release(held, "not needed")
            else:
                self._claims.drop(held)

    async def release_abandoned(self, sweep: str) -> bool:
        """Release the permits met whose agents are gone; return whether others' may be. Raises StoreError."""
        suspects = False
        for log in list(self._pools.get(sweep, _Pool()).logs.values()):
            if self._claims.is_abandoned(log):
                await log.jump(self._store)
                if self._claims.is_abandoned(log) and (held := await self._claims.take(log, sweep)):
                    await self._claims.release(held, "its agent is gone")
            suspects |= self._claims.is_suspect(log)
        return suspects

    @property
    def idle(self) -> list[str]:
        """Return the sweeps that have unused permits here."""
        return [sweep for sweep, pool in self._pools.items() if pool.idle]
