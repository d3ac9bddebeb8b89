"""The shipper: what a checkpoint waits for is in the store, however much else there is."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

from monkey.protocol.clock import MachineClock
from monkey.protocol.layout import Keys
from monkey.protocol.record.shipment import LOG, METRICS, Piece
from monkey.protocol.record.shipment_reading import ShipmentReader
from monkey.store.memory import MemoryStore
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.scheduling.agent_identity import AgentIdentity
from tests.loops import Run
from tests.pieces import join_pieces
from tests.signing import SIGNERS

KEYS, AGENT = Keys("shop"), "cloud/i-1/a"
MEGABYTE = 1 << 20


class LoudJobs:
    """A runner of two jobs: both log metrics, and one prints faster than anything is shipped."""

    def __init__(self, metrics: int) -> None:
        self.waiting = {("a", f"{METRICS}0"): bytes(metrics), ("b", f"{METRICS}0"): b"the last"}
        self.at = dict.fromkeys([*self.waiting, ("a", LOG)], 0)

    def take_unshipped(self, most: int) -> Iterator[Piece]:
        for (job, name), data in list(self.waiting.items()):
            yield from self.give(job, name, data[:most])
            self.waiting[job, name], most = data[most:], most - len(data[:most])
        yield from self.give("a", LOG, bytes(most))

    def give(self, job: str, name: str, data: bytes) -> Iterator[Piece]:
        if data:
            self.at[job, name] += len(data)
            yield Piece(job, 1, name, self.at[job, name] - len(data), data)


def test_metrics_are_durable_once_they_were_shipped_whatever_is_printed_meanwhile(run: Run) -> None:
    store, jobs = MemoryStore(), LoudJobs(metrics=9 * MEGABYTE)
    identity = AgentIdentity("shop", "cloud", "i-1", "a", [], 1.0)
    agent = AgentDaemon(
        store, identity, SIGNERS, MachineClock(), cast(Any, jobs), cast(Any, SimpleNamespace()), random.Random(1)
    )

    async def main() -> None:
        await agent.shipper.ship()
        pieces = await ShipmentReader(store, KEYS, AGENT).read_all()
        assert len(join_pieces(pieces, "a", 1)[f"{METRICS}0"]) == 9 * MEGABYTE
        assert join_pieces(pieces, "b", 1)[f"{METRICS}0"] == b"the last"

    run(main())
