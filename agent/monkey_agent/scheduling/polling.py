"""How long an agent does not look at the store: as long as looking costs, and no longer than it is needed."""

from __future__ import annotations

import random
from collections.abc import Callable

from monkey.protocol.clock import Clock
from monkey.protocol.layout import Keys
from monkey.protocol.wakeup import LISTEN, SELDOM, WakeupBell
from monkey.store.store_port import Store

#: Seconds after its start in which an agent without work looks more often: every so many seconds where looking costs
#: nothing, and where it costs money.
_FRESH = 3.0
FRESH_POLL, FRESH_POLL_DEAR = 0.02, 1.0


class PollSchedule:
    """The pauses of one agent."""

    def __init__(self, store: Store, keys: Keys, clock: Clock, rng: random.Random) -> None:
        """Begin now."""
        self._store, self._clock, self._random = store, clock, rng
        self._born = clock.now()
        self._bell = WakeupBell(store, keys)

    async def rest(self, *, idle: bool, shortly: float | None, every_second: Callable[[], bool]) -> None:
        """Wait until it is time to look again.

        `idle`: there is no work; an agent is started before its work is in the store, so at first it looks often.
        `shortly`: seconds after which something is due that only a look can tell, None for nothing. Where looking costs
        money the bell is heard meanwhile, and `every_second` called, which says whether to look at once.
        """
        dear = self._store.poll >= SELDOM
        if idle and self._clock.now() - self._born < _FRESH:
            await self._clock.sleep(FRESH_POLL if self._store.poll < 1 else FRESH_POLL_DEAR)
            return
        pause = self._store.poll * self._random.uniform(0.8, 1.2)
        if not dear:
            await self._clock.sleep(pause)
            return
        until = self._clock.now() + (pause if shortly is None else min(pause, max(shortly, LISTEN)))
        while (left := until - self._clock.now()) > 0:
            await self._clock.sleep(min(left, LISTEN))
            if every_second() or await self._bell.rung():
                return
