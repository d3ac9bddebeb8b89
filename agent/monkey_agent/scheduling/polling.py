"""How long an agent does not look at the store: as long as looking costs, and no longer than it is needed."""

from __future__ import annotations

import random
from collections.abc import Callable

from monkey.protocol.clock import Clock
from monkey.protocol.layout import Keys
from monkey.protocol.liveness.observer import HeartbeatObserver
from monkey.protocol.liveness.roster import SHARE
from monkey.protocol.wakeup import LISTEN, SELDOM, WakeupBell, compute_listen_pause
from monkey.spec.job.lease_length import LEASE
from monkey.store.store_port import Store

#: Seconds after its start in which an agent without work looks more often: every so many seconds where looking costs
#: nothing, and where it costs money.
_FRESH = 3.0
FRESH_POLL, FRESH_POLL_DEAR = 0.02, 1.0
#: Times the pause of other agents that an agent of a large fleet rests while its slots are taken: it hears the bell.
_CALM = 3.0
#: Seconds after which what is due at a moment is past.
_MOMENT = 0.2


class PollSchedule:
    """The pauses of one agent."""

    def __init__(self, store: Store, keys: Keys, clock: Clock, rng: random.Random, observer: HeartbeatObserver) -> None:
        """Begin now; `observer` knows how large the fleet is."""
        self._store, self._clock, self._random, self._observer = store, clock, rng, observer
        self._born = clock.now()
        self._bell, self._listened = WakeupBell(store, keys), self._born

    async def rest(
        self, *, idle: bool, shortly: float | None, full: Callable[[], bool], every_second: Callable[[], bool]
    ) -> bool:
        """Wait until it is time to look again; return whether there may be news that no bell will tell of again.

        `idle`: there is no work; an agent is started before its work is in the store, so at first it looks often.
        `shortly`: seconds after which something is due that only a look can tell, None for nothing. Where looking costs
        money the bell is heard meanwhile, the more seldom the more agents there are. There `every_second` is called,
        too, which says whether to look at once, and `full`, which says whether no slot is free.
        """
        dear = self._store.poll >= SELDOM
        if idle and self._clock.now() - self._born < _FRESH:
            await self._clock.sleep(FRESH_POLL if self._store.poll < 1 else FRESH_POLL_DEAR)
            return True
        pause = (SHARE if self._observer.leads else self._store.poll) * self._random.uniform(0.8, 1.2)
        if not dear:
            await self._clock.sleep(pause)
            return True
        began, longest = self._clock.now(), float("inf") if shortly is None else max(shortly, LISTEN)
        while (
            left := min(began + min(self._stretch(pause, full), longest), self._find_due(began, full))
            - self._clock.now()
        ) > 0:
            await self._clock.sleep(min(left, LISTEN))
            if every_second():
                return False
            if self._clock.now() >= self._listened + compute_listen_pause(self._observer.living) - LISTEN / 2:
                self._listened = self._clock.now()
                if await self._bell.rung():
                    return True
        return False

    def _find_due(self, began: float, full: Callable[[], bool]) -> float:
        """Return when an agent may have been silent for long enough: one that has a free slot looks at once then.

        A look that failed leaves what is due as it was; so it is a second after the last look, at the earliest.
        """
        return float("inf") if full() else max(self._observer.due + _MOMENT, began + LISTEN)

    def _stretch(self, pause: float, full: Callable[[], bool]) -> float:
        """Return the pause, longer in a large fleet while no slot is free; not for the agent that others read."""
        calm = self._observer.crowded and not self._observer.leads and full()
        return pause * _CALM * self._observer.lease / LEASE if calm else pause
