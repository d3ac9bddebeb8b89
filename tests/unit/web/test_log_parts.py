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


def test_a_log_without_its_middle_is_shown_from_the_words_for_that_on(tmp_path: Path) -> None:
    write_project(tmp_path)
    words = b"\n... left out ...\n"
    #: Place of each segment in the log, and what it has.
    segments = [(0, b"1" * 5000), (5000, b"2" * 5000), (90_000 - len(words), words + b"3" * 5000), (95_000, b"4" * 50)]
    end = words + b"3" * 5000 + b"4" * 50

    async def main() -> None:
        async with opened(tmp_path) as world:
            job = (await apply(world)).wanted[0].desired.table.ids[0]
            pen = Pen(world)
            k = await pen.begin(job)
            await pen.end(job)
            for i, (place, part) in enumerate(segments):
                key = spell_segment_key(f"{world.keys.out(job, k)}log/", i)
                await world.at.put(key, pack_log_segment(world.at, place, part))
            live = LiveStore(world)
            await live.refresh()
            view, _ = await live.find_sweep("small")
            for at in (0, 5000, 50_000):
                assert await read_log_part(live, view, job, 0, at) == (end, 90_000 - len(words), False)
            # A browser that followed while it ran goes on where it was.
            assert await read_log_part(live, view, job, 0, 95_003) == (b"4" * 47, 95_003, False)
            assert (await read_log_part(live, view, job, 0, 95_050)).data == b""

    asyncio.run(main())
