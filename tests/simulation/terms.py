"""Sweeps that expire: when they do, by people's clock, and how they are given more time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from typing import TYPE_CHECKING

from monkey.plan.commits.seen_commit import SeenCommit
from monkey.protocol.sweeps.queue_markers import mark_queue
from monkey.protocol.sweeps.sweep_log import append_order, append_seen, read_sweep
from monkey.spec.job.expires import Expiry
from tests.signing import SIGNERS
from tests.simulation.body import KEYS

if TYPE_CHECKING:
    from tests.simulation.net import Net
    from tests.simulation.world import World


class Terms:
    """When sweeps expire, and what people do about that."""

    def __init__(self, world: World, net: Net) -> None:
        self.world, self.net = world, net
        #: Of its own, so that the rest of each seed's story stays what it was without terms.
        self.random = random.Random(f"terms {world.seed}")
        self.seen = random.Random(f"seen {world.seed}")
        #: In one of three: the other seeds stay what they were.
        self.any = world.weather.expires and world.seed % 3 == 0

    def now(self) -> float:
        return self.net.host.wall()

    def draw(self) -> Expiry | None:
        """Say when a sweep expires: now and then while its jobs run."""
        if not self.any or self.random.random() < 0.4:
            return None
        after = self.random.uniform(60, 1200)
        return Expiry(after=after) if self.random.random() < 0.5 else Expiry(at=self.now() + after)

    async def see(self, name: str) -> None:
        """Note a commit, now and then: it must change nothing that an order changes, and open nothing."""
        if self.seen.random() < 0.3:
            state, seen = (
                await read_sweep(self.net, KEYS, SIGNERS, name),
                SeenCommit({"commit": str(self.now())}, "ann"),
            )
            self.world.counts["commit seen"] += await append_seen(self.net, KEYS, SIGNERS, state, seen)

    async def over(self, names: Iterable[str], since: float) -> list[str]:
        """Return the sweeps that have been over for so many seconds."""
        if not self.any:
            return []
        states = [await read_sweep(self.net, KEYS, SIGNERS, name) for name in names]
        return [state.name for state in states if state.over(self.now() - since)]

    async def extend(self, name: str, seconds: float) -> None:
        """Let a sweep that expires go on, if it is to; two people may do so at once, and the latest time counts."""
        if not self.any or (await read_sweep(self.net, KEYS, SIGNERS, name)).expires is None:
            return
        self.world.counts["extend"] += 1
        until = self.now() + seconds
        both = [
            append_order(self.net, KEYS, SIGNERS, name, "extend", until=each) for each in (until, until - seconds / 2)
        ]
        n = max(await asyncio.gather(*both))
        if (await read_sweep(self.net, KEYS, SIGNERS, name)).expires != until:
            self.world.violations["what was extended was shortened"] += 1
        await mark_queue(self.net, KEYS, ["f"], name, n)
