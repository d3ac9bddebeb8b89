"""The shipper: what a checkpoint waits for is in the store, however much else there is."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from monkey.protocol.clock import MachineClock
from monkey.protocol.layout import Keys
from monkey.protocol.record.shipment import LOG, METRICS, Piece, name_limited_log
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


class EndlessLogs(LoudJobs):
    """Two jobs log metrics; one prints for ever, behind the first half of a log that may have two mebibytes."""

    NAME = name_limited_log(2 * MEGABYTE)

    def __init__(self) -> None:
        super().__init__(metrics=1000)
        self.at["a", self.NAME] = MEGABYTE

    def take_unshipped(self, most: int) -> Iterator[Piece]:
        for job in ("a", "b"):
            self.waiting[job, f"{METRICS}0"] += b"x"
            yield from self.give(job, f"{METRICS}0", self.waiting.pop((job, f"{METRICS}0")))
            self.waiting[job, f"{METRICS}0"] = b""
        yield from self.give("a", self.NAME, bytes(min(most, MEGABYTE // 8)))


@pytest.mark.parametrize("layout", [2, 3])
def test_of_a_long_log_the_last_half_is_in_the_store_and_no_metric_is_lost(run: Run, layout: int) -> None:
    store, jobs = MemoryStore(), EndlessLogs()
    store.layout = layout
    identity = AgentIdentity("shop", "cloud", "i-1", "a", [], 1.0)
    agent = AgentDaemon(
        store, identity, SIGNERS, MachineClock(), cast(Any, jobs), cast(Any, SimpleNamespace()), random.Random(1)
    )

    async def main() -> None:
        for _ in range(60):
            agent.shipper.collect()
            await agent.shipper.ship()
            await asyncio.sleep(0)  # what is removed is removed beside
        printed = jobs.at["a", EndlessLogs.NAME]
        assert printed > 10 * MEGABYTE
        reader = ShipmentReader(store, KEYS, AGENT)
        pieces = await reader.read(agent.heart.shipment.to_json())
        for job in ("a", "b"):
            assert len(join_pieces(pieces, job, 1)[f"{METRICS}0"]) == jobs.at[job, f"{METRICS}0"]
        kept = sorted({(piece.at, len(piece.data)) for piece in pieces if piece.limit})
        if layout == 2:  # there, a reader of the log's segments could not tell their places
            assert not kept
            return
        assert MEGABYTE <= sum(size for _, size in kept) <= MEGABYTE * 3 / 2
        ends = [at + size for at, size in kept]
        assert [at for at, _ in kept][1:] == ends[:-1], "the rest is one"
        assert ends[-1] >= printed - MEGABYTE // 2

    run(main())
