"""What the page reads of agents' shipments, by a store that counts: each once, for logs and curves together."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

from monkey.protocol.record.shipment import METRICS, Piece
from monkey.web.curve_cache import CurveCache
from monkey.web.live_store import LiveStore
from monkey.web.log_parts import read_log_part
from tests.unit.apply.small_project import Pen, apply, opened, write_project

LINE = b'{"t":1.0,"step":0,"m":{"loss":1.0}}\n'


class CountingStore:
    """A store that counts what is read of it, by key or prefix."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def get(self, key: str) -> bytes:
        self.asked[key] += 1
        return await self._store.get(key)

    async def list(self, prefix: str, *rest: Any, **options: Any) -> Any:
        self.asked[prefix] += 1
        return await self._store.list(prefix, *rest, **options)


async def seal_segment(pen: Pen) -> None:
    """Have what the agent shipped so far in a segment, and the next piece in its heartbeat."""
    shipment = pen.heart.shipment
    number, data = shipment.pending()
    await pen.world.at.put(pen.world.keys.shipped_segment(pen.agent, number), data)
    shipment.seal()
    await pen.heart.beat()


def list_kept(live: LiveStore) -> set[str]:
    """Return the jobs of which the page keeps what was shipped."""
    return {job for attempts in live.shipped._kept.values() for job, _ in attempts}


def test_a_shipment_is_read_once_for_logs_and_curves_and_released_at_the_end(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as world:
            jobs = list((await apply(world)).wanted[0].desired.table.ids)
            store = world.store = CountingStore(world.store)
            pen = Pen(world)
            for job in jobs:
                k = await pen.begin(job)
                await pen.write(job, k, b"one line\n")
                pen.heart.shipment.add(Piece(job, k, f"{METRICS}0.jsonl", 0, LINE))
            await seal_segment(pen)
            live = LiveStore(world)
            curves = CurveCache(live)
            await live.refresh()
            view, _ = await live.find_sweep("small")
            store.asked.clear()
            for _ in range(2):
                for job in jobs:
                    assert (await read_log_part(live, view, job, 0, 0)).data == b"one line\n"
                    assert list((await curves.read(view, job)).curves["loss"].values) == [1.0]
            prefix = world.keys.shipped(pen.agent)
            assert {key: count for key, count in store.asked.items() if key.startswith(prefix)} == {
                prefix: 1,
                world.keys.shipped_segment(pen.agent, 1): 1,
            }
            assert not store.asked[world.keys.beat(pen.agent)]  # the snapshot has it
            assert list_kept(live) == set(jobs)
            await pen.end(jobs[0])
            await live.refresh()
            assert list_kept(live) == set(jobs[1:])
            for job in jobs[1:]:
                await pen.end(job)
            await live.refresh()
            assert not list_kept(live)

    write_project(tmp_path)
    asyncio.run(main())
