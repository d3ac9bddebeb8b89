"""An agent's heartbeats: when they are written, and what they tell people."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from monkey.errors import StoreError
from monkey.protocol.heartbeat import BEAT_WATCHED
from monkey.protocol.liveness.lease import compute_beat_pause
from monkey.protocol.wakeup import compute_listen_pause
from monkey_agent.ports import Runner
from monkey_agent.scheduling.agent_context import AgentContext
from monkey_agent.scheduling.attempts import Attempts
from monkey_agent.scheduling.claiming import JobPicker
from monkey_agent.scheduling.dispatcher import Dispatcher
from monkey_agent.scheduling.sweep_queue import SweepQueue

#: Seconds before a heartbeat is tried again that the store did not acknowledge.
BEAT_RETRY = 3.0


class HeartbeatLoop:
    """The heartbeats of one agent, and the segments of its journal."""

    def __init__(
        self,
        context: AgentContext,
        runner: Runner,
        queue: SweepQueue,
        picker: JobPicker,
        attempts: Attempts,
        dispatcher: Dispatcher,
    ) -> None:
        """Beat for an agent that is made of these parts."""
        self._context, self._heart, self._clock = context, context.heart, context.clock
        self._runner, self._queue, self._picker = runner, queue, picker
        self._attempts, self._dispatcher = attempts, dispatcher
        self._now, self._sealing = asyncio.Event(), asyncio.Lock()
        #: More fields of heartbeats.
        self.more_vitals: Callable[[], dict[str, Any]] = dict
        self._heart.vitals = self._tell

    def hurry(self) -> None:
        """Beat as soon as may be."""
        self._now.set()

    async def run(self) -> None:
        """Beat for ever."""
        while True:
            await self._rest()
            if self._heart.journal.full:
                await self.seal()
            if await self._heart.beat():
                # In this order: what must ask again is frozen before the supervisor's deadline moves.
                self._attempts.check_all()
                self._runner.renew(self._heart.deadline)
                self._dispatcher.refill()
            else:
                await self._clock.sleep(BEAT_RETRY)

    async def _rest(self) -> None:
        """Wait until a beat is due, or a user begins to watch."""
        crowded = self._context.observer.crowded
        every, least = compute_beat_pause(self._heart.lease, crowded=crowded), 0.9 if crowded else 0.8
        if self._clock.now() >= self._heart.acknowledged + every:
            return
        # Where looking costs nothing, beating does not either, and whoever looks in sees what is.
        often = self._queue.watched or self._context.store.poll < 1
        pause = self._watched_pause if often else every * self._context.random.uniform(least, 1.0)
        waits = [asyncio.ensure_future(self._clock.sleep(pause)), asyncio.ensure_future(self._now.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        self._now.clear()
        if not often:  # a bucket may slow down whoever writes a key more than once a second
            await self._clock.sleep(max(0.0, self._heart.acknowledged + BEAT_WATCHED - self._clock.now()))

    @property
    def _watched_pause(self) -> float:
        """Return the seconds between beats while a user watches: more in a large fleet, whose beats cost money."""
        agents = self._context.observer.living + 1 if self._context.observer.crowded else 1
        return BEAT_WATCHED * compute_listen_pause(agents)

    async def seal(self) -> bool:
        """Write what the journal gathered as a segment; return whether the store has it.

        Its bytes stay the same until the store has answered.
        """
        async with self._sealing:
            i, block = self._heart.journal.pending()
            if not block:
                return True
            key = self._context.keys.segment(self._context.identity.agent, i)
            try:
                await self._context.create(self._context.store, key, block.encode())
            except StoreError as exc:
                self._context.troubles.note(exc)
                return False
            self._heart.journal.seal()
            return True

    # -- for people ---------------------------------------------------------------------------------------------------

    def _tell(self) -> dict[str, Any]:
        at_work = [work for work in self._attempts.live if work.slot]
        left = self._queue.left_to_others
        idle = sorted(self._attempts.in_hand.keys() - {work.job for work in at_work})
        alerts = [*self._context.troubles.messages, *self._dispatcher.alerts, *sorted(self._picker.torn)[:3]]
        if self._heart.lease != self._context.identity.lease:
            alerts.append(f"the lease is {self._heart.lease:g} s: longer ones need a store that a newer monkey began")
        return {
            "running": list(self._attempts.list_vitals(at_work)),
            "idle": idle,
            "alert": "; ".join(filter(None, alerts)),
            "unfit": sorted(left),
            # Whoever reads this compares revisions: clocks of machines differ.
            "unfit_revisions": {name: left[name].revision for name in sorted(left)},
            # Whoever applies waits for an agent of each image.
            **({"own_image": own} if (own := self._context.identity.images.own) is not None else {}),
            **({"draining": True} if self._dispatcher.closed else {}),
            **self._more(),
        }

    def _more(self) -> dict[str, Any]:
        with self._context.errors.alone("what heartbeats tell of the machine"):
            return self.more_vitals()
        return {}
