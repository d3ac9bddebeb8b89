"""Parts of logs for the page: of packed segments, which alone tell where they begin."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from monkey.protocol.layout import spell_segment_key
from monkey.protocol.record.packed_segments import pack_log_segment
from monkey.web.live_store import LiveStore
from monkey.web.log_parts import read_log_part
from tests.unit.apply.small_project import Pen, apply, opened, write_project
from tests.unit.web.test_shipments import CountingStore

MEBIBYTE = 1 << 20


def test_the_end_of_a_packed_log_is_read_without_its_beginning(tmp_path: Path) -> None:
    write_project(tmp_path)
    dice = random.Random(1)
    parts = [dice.randbytes(1000) * 3000, b"little " * 500_000, b"last\n" * 20]
    whole = b"".join(parts)

    async def main() -> None:
        async with opened(tmp_path) as world:
            job = (await apply(world)).wanted[0].desired.table.ids[0]
            store = world.store = CountingStore(world.store)
            pen = Pen(world)
            k = await pen.begin(job)
            await pen.end(job)
            log, place = f"{world.keys.out(job, k)}log/", 0
            for i, part in enumerate(parts):
                await world.at.put(spell_segment_key(log, i), pack_log_segment(world.at, place, part))
                place += len(part)
            live = LiveStore(world)
            await live.refresh()
            view, _ = await live.find_sweep("small")
            store.asked.clear()
            newest = await read_log_part(live, view, job, 0, 0)
            assert newest.data and newest.data == whole[newest.start :] and not newest.growing
            assert len(newest.data) >= MEBIBYTE
            assert not store.asked[spell_segment_key(log, 0)], "only its end is shown"
            for at in (len(whole) - 7, len(whole), len(parts[0]) + 5):
                assert await read_log_part(live, view, job, 0, at) == (whole[at:], at, False)
            assert (await read_log_part(live, view, job, 0, len(whole) + 9)).data == b""
            stored = await store.get(spell_segment_key(log, 2))
            await world.at.put(spell_segment_key(log, 2), stored[:-1])
            assert b"log/000002: it is cut short" in (await read_log_part(live, view, job, 0, 0)).data
            for i in range(3, 60):  # a stranger makes any number of them
                await world.at.put(spell_segment_key(log, i), pack_log_segment(world.at, 10**14, b"."))
            store.asked.clear()
            await read_log_part(live, view, job, 0, 0)
            assert sum(count for key, count in store.asked.items() if key.startswith(f"{log}0")) < 20

    asyncio.run(main())
