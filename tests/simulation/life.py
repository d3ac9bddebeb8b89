"""One life of an agent, from its start until it leaves or is killed."""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import replace
from typing import TYPE_CHECKING

from monkey.protocol.notices.sweep_notices import Notice
from monkey.spec.job.lease_length import LEASE, LONGEST_LEASE
from monkey_agent.notifications.undelivered_notice import UndeliveredNotice
from monkey_agent.pilot_time import PilotTime
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.scheduling.agent_identity import AgentIdentity
from tests.signing import ANYBODY
from tests.simulation.body import Body
from tests.simulation.machine_slots import Slots
from tests.simulation.net import Host, Net
from tests.simulation.recording import RecordingBody

if TYPE_CHECKING:
    from monkey.protocol.sweeps.sweep_state import SweepState
    from monkey.spec.project.notify_channel import NotifyChannel
    from tests.simulation.mutant import Mutant
    from tests.simulation.world import World


def _never_extended(state: SweepState) -> SweepState:
    return replace(state, expires=state.revision.expires if state.revision else None)


class Life:
    """One life of an agent on a host."""

    def __init__(self, world: World, host: Host, mutant: Mutant) -> None:
        world.lives += 1
        self.world, self.host = world, host
        self.body = (RecordingBody if world.weather.records else Body)(world, host)
        self.body.supervised = not mutant.unsupervised
        before = frozenset(host.lives)
        time, boot = self._draw_time(), f"b{world.lives}"
        identity = AgentIdentity("p", "f", host.name, boot, before, None, *time, lease=self._draw_lease(boot))
        host.lives.append(identity.agent)
        rng = random.Random(world.random.random())
        self.slots = Slots(world.random.randint(1, 3))
        net, signers = Net(world, host), ANYBODY if mutant.obedient else world.signers
        self.agent = AgentDaemon(net, identity, signers, host, self.body, self.slots, rng, mutant.parts)
        self.agent.heart.journal.limit = 4
        self.agent.observer.reads = world.random.choice([0, 1, 16])
        self.agent.observer.crowd = world.crowd
        self.body.on_exit = self._exited
        self.agent.notifier.deliver = self._deliver
        world.pilots.raised(self)
        if mutant.endless:
            self.agent.attempts._time = PilotTime(host, host.wall() + 1e6)
        if mutant.untimely:
            self.agent.dispatcher._time = self.agent.picker._time = PilotTime(host)
        if mutant.deaf:
            self.agent.queue.job_met = lambda candidates, job, met: None
        if mutant.timeless:
            self.agent.queue.over = lambda state: False
        if mutant.bygone:
            self.agent.queue.over = lambda state: _never_extended(state).over(host.wall())
        if mutant.credulous:
            queue = self.agent.queue
            queue._choose_sweeps = lambda: {name: queue._queue.find_open(name) for name in queue._queue.sweeps}
        self.main = world.loop.create_task(self._run())

    def _draw_time(self) -> tuple[float, float | None]:
        whole = self.world.pilots.whole
        return (float("inf"), None) if whole is None else (self.host.wall() + whole, whole)

    def _draw_lease(self, boot: str) -> float:
        if not self.world.leases:
            return LEASE
        leases, whole = [LEASE, 120.0, 300.0, LONGEST_LEASE], self.world.pilots.whole or float("inf")
        return random.Random(f"lease {self.world.seed} {boot}").choice([each for each in leases if each <= whole / 2])

    @property
    def busy(self) -> bool:
        """Is it to be replaced, or has it somebody to tell?"""
        return self.main.done() or self.agent.notifier.waits

    async def _deliver(self, channel: NotifyChannel, notice: Notice) -> None:
        """Tell people, or fail to; now and then the agent is killed before, or before it can note that it did."""
        rnd, world = self.world.random, self.world
        await self.host.sleep(rnd.choice([0.1, 5, 20]))
        for told in (False, True):
            if world.weather.crashes and rnd.random() < 0.1:
                world.counts["crash while it is told"] += 1
                self.crash()
                await asyncio.sleep(0)
            if not told and rnd.random() < world.fault_rate:
                world.counts["not told at once"] += 1
                raise UndeliveredNotice("it answered 500", final=False)
            if not told:
                world.told[notice["sweep"]] += 1
                world.told_events[notice["event"]] += 1
                world.counts[f"told of {notice['kind']}"] += 1

    async def _run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await self.agent.run()
            await self.body.close()

    def _exited(self) -> None:
        """An attempt has ended: now and then the agent is killed before the store knows."""
        rnd = self.world.random
        if self.world.weather.crashes and not self.world.calm and rnd.random() < 0.05:
            self.world.counts["crash while an end is recorded"] += 1
            self.world.loop.call_later(rnd.uniform(0, self.world.latency[1]), self.crash)

    def crash(self) -> None:
        """kill -9: nothing more happens in this process; its supervisor ends its jobs."""
        if self.main.done():
            return
        self.world.killed_slots += self.slots.count
        for task in [*self.agent._tasks, self.main]:
            task.cancel()
        if self.world.mutant.forgetful:
            self.host.exits.clear()
        self.body.kill()
