"""What lies between an agent and the store: latency, outages, and answers that are lost, late, twice or untrue."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monkey.errors import KeyMissing, StoreUnavailable
from monkey.store.format import VERSION
from monkey.store.store_port import ListedObject
from monkey_agent.ports import AttemptOutcome

if TYPE_CHECKING:
    from tests.simulation.body import Execution
    from tests.simulation.recording import Written
    from tests.simulation.world import World

#: Seconds after which a client gives an operation up: its outcome is not known then.
GIVE_UP = 10.0
#: What people's clocks say when a run begins.
WALL = 1e9
FAULTS = ("lost", "late", "answer lost", "spurious", "twice")


class Host:
    """A machine with one agent at a time: its clock, and the pauses in which nothing on it moves."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.drift = 1 + world.random.uniform(-1e-3, 1e-3)
        self.paused_until = 0.0
        #: The agents that have run here: what they left is ended before another starts.
        self.lives: list[str] = []
        #: What was left: nothing, where guards do their work.
        self.left: list[Execution] = []
        #: Job to the position of the claim whose attempt exited, and how: kept until the agent gives it up. It outlives
        #: the agent's process, but no loss of power.
        self.exits: dict[str, tuple[int, AttemptOutcome]] = {}
        #: Job to what its newest attempt here logged and no agent has brought to the store.
        self.disk: dict[str, Written] = {}
        #: The store, as this machine sees it.
        self.net = Net(world, self)

    def now(self) -> float:
        return self.world.loop.time() * self.drift

    def wall(self) -> float:
        return WALL + self.now()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self.drift)
        await self.awake()

    async def awake(self) -> None:
        """Return when the machine moves."""
        left = self.paused_until - self.world.loop.time()
        if left > 0:
            await asyncio.sleep(left)
            await self.awake()  # it may have been paused again


class Net:
    """A store as one agent sees it."""

    url, id, layout = "memory://simulated", "", VERSION

    def __init__(self, world: World, host: Host, *, kind: bool = False) -> None:
        """`kind`: no faults on this way (for whoever checks, not for whoever works)."""
        self.world, self.host, self.kind = world, host, kind
        self.poll = world.poll
        self.random: random.Random = world.random
        self.counts: Counter[str] = world.counts
        #: Listing to what it says until when, whatever happens: some stores' listings lag.
        self._lagging: dict[tuple[str, str], tuple[list[ListedObject], float]] = {}

    async def create(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        return await self._pass(lambda: self.world.create(key, data), creates=True)

    async def put(self, key: str, data: bytes) -> None:
        self.counts["roster"] += key.endswith("/roster")
        await self._pass(lambda: self.world.write(key, data))

    async def get(self, key: str) -> bytes:
        found = await self._pass(lambda: self.world.state.objects.get(key))
        if found is None:
            raise KeyMissing(key)
        return found[0]

    async def get_newest(self, key: str) -> bytes:
        return await self.get(key)

    async def list(self, prefix: str, after: str = "") -> list[ListedObject]:
        fresh = await self._pass(lambda: self.world.listing(prefix, after))
        now, (before, until) = self.world.loop.time(), self._lagging.get((prefix, after), (fresh, 0.0))
        if self.kind or self.world.calm:
            return fresh
        if now < until:
            self.counts["stale listing"] += 1
            return before
        lags = self.random.random() < self.world.fault_rate / 8
        self._lagging[prefix, after] = (fresh, now + self.random.uniform(0, 300) if lags else 0.0)
        return fresh

    async def delete(self, key: str) -> None:
        await self._pass(lambda: self.world.state.remove(key))

    async def put_file(self, key: str, path: Path) -> None:
        raise NotImplementedError

    async def get_file(self, key: str, path: Path) -> None:
        path.write_bytes(await self.get(key))  # noqa: ASYNC240

    async def close(self) -> None:
        pass

    async def _pass(self, effect: Callable[[], Any], *, creates: bool = False) -> Any:
        """Let an operation through to the store, as well as the day allows."""
        loop = self.world.loop
        if self.kind:
            await asyncio.sleep(0.01)
            return effect()
        if self.world.away(loop.time()):
            self.counts["outage"] += 1
            await self._give_up()
        latency = self.random.uniform(*self.world.latency)
        fault = self._fault(creates)
        if fault:
            self.counts[fault] += 1
        if fault == "spurious":
            await asyncio.sleep(latency)
            await self.host.awake()
            return False
        if fault in ("late", "answer lost"):
            loop.call_later(self.random.uniform(0, 120) if fault == "late" else latency, effect)
        if fault in ("lost", "late", "answer lost"):
            await self._give_up()
        if fault == "twice":
            loop.call_later(self.random.uniform(0, 60), effect)
        await asyncio.sleep(latency)
        result = effect()
        await self.host.awake()
        return result

    def _fault(self, creates: bool) -> str | None:
        if self.world.calm or self.random.random() >= self.world.fault_rate:
            return None
        fault = self.random.choice(FAULTS)
        return fault if creates or fault != "spurious" else "lost"

    async def _give_up(self) -> None:
        await asyncio.sleep(GIVE_UP)
        await self.host.awake()
        raise StoreUnavailable
